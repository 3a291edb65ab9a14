#pragma once
// A tensor of a batch as Python's array libraries see it: DLPack, the buffer protocol, numpy's
// __array_interface__. Whoever takes one of these holds the batch.

#include <memory>
#include <optional>

#include <nanobind/nanobind.h>

#include "gpu/reader/batch.h"

namespace batchfs::python {

namespace nb = nanobind;

struct TensorView {
  std::shared_ptr<const reader::Batch> batch;
  const reader::Tensor* tensor;  // of the batch

  const reader::Dtype& dtype() const { return tensor->info->dtype; }
  /// Never null: there is an address even where there are no bytes.
  const void* data() const;
};

void bind_tensor(nb::module_& module);

/// The GPU that a batch is on; none: the host.
std::optional<int> number_of(const reader::Batch& batch);

/// What `take`, a library's function that makes a tensor of a capsule, makes of it, for the stream
/// that `current_stream` says is the library's current one on a GPU. All in one call: after a
/// training step the caches hold nothing of this, and every detour is paid for in cache misses.
nb::object taken_by(const TensorView& view, nb::handle take, nb::handle current_stream);

nb::tuple tuple_of(const std::vector<std::int64_t>& numbers);

}  // namespace batchfs::python

#pragma once
// A tensor of a batch in the interfaces of Python's array libraries: DLPack, the buffer protocol,
// numpy's __array_interface__. Every object made by one of these holds the batch.

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
  /// Never null, even for a tensor without bytes.
  const void* data() const;
};

void bind_tensor(nb::module_& module);

/// The number of the batch's GPU; nullopt: host memory.
std::optional<int> number_of(const reader::Batch& batch);

/// Calls `take`, a library's function that makes a tensor of a capsule, for the library's current
/// stream on a GPU, which `current_stream` returns. All in one call: after a training step the
/// caches hold nothing of this, and every detour is paid for in cache misses.
nb::object taken_by(const TensorView& view, nb::handle take, nb::handle current_stream);

nb::tuple tuple_of(const std::vector<std::int64_t>& numbers);

}  // namespace batchfs::python

#pragma once
// A tensor of a batch as Python's array libraries see it: DLPack, the buffer protocol, numpy's
// __array_interface__. Whoever takes one of these holds the batch.

#include <memory>

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

nb::tuple tuple_of(const std::vector<std::int64_t>& numbers);

}  // namespace batchfs::python

#pragma once
// Means of overlapping predictions, on arrays of numpy.

#include <nanobind/nanobind.h>

namespace batchfs::python {

namespace nb = nanobind;

void bind_blend(nb::module_& module);

}  // namespace batchfs::python

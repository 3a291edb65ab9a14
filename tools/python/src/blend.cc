#include "tools/python/src/blend.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "engine/write/blend.h"

namespace batchfs::python {

namespace {

using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Values = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

void check(bool holds) {
  if (!holds) throw Error(ErrorCode::internal, "a box does not lie in what is blended");
}

template <class T>
void blend_into(Out<T> out, std::vector<Values<T>> parts,
                std::vector<std::vector<std::int64_t>> starts,
                std::vector<std::vector<std::optional<Weights>>> weights, T fill) {
  Dims shape;
  check(out.ndim() > 0 && out.ndim() <= kMaxDims);
  for (std::size_t d = 0; d < out.ndim(); ++d)
    shape.push_back(static_cast<std::int64_t>(out.shape(d)));
  check(parts.size() == starts.size() && parts.size() == weights.size());
  std::vector<WeightedBox<T>> boxes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check(parts[i].ndim() == shape.size() && starts[i].size() == shape.size() &&
          weights[i].size() == shape.size());
    WeightedBox<T> box{{Dims(shape.size()), Dims(shape.size())}, parts[i].data(), {}};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      box.box.start[d] = starts[i][d];
      box.box.shape[d] = static_cast<std::int64_t>(parts[i].shape(d));
      check(starts[i][d] >= 0 && starts[i][d] <= shape[d] &&
            box.box.shape[d] <= shape[d] - starts[i][d]);
      const std::optional<Weights>& along = weights[i][d];
      check(!along || along->shape(0) == parts[i].shape(d));
      box.weights.push_back(along ? along->data() : nullptr);
    }
    boxes.push_back(std::move(box));
  }
  const nb::gil_scoped_release release;
  blend<T>(boxes, shape, fill, out.data());
}

}  // namespace

void bind_blend(nb::module_& module) {
  using namespace nb::literals;
  module.def("blend", blend_into<float>, "out"_a.noconvert(), "parts"_a, "starts"_a, "weights"_a,
             "fill"_a);
  module.def("blend", blend_into<double>, "out"_a.noconvert(), "parts"_a, "starts"_a, "weights"_a,
             "fill"_a);
}

}  // namespace batchfs::python

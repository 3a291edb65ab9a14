#pragma once
// Which dimensions of a tensor a picture shows as lines, as columns and as colours.

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// Numbers of dimensions of a tensor. The samples, dimension 0, are none of them.
struct PictureAxes {
  std::size_t lines = 0, columns = 0;
  std::optional<std::size_t> colours;  // red, green, blue; what follows is not shown
  std::vector<std::size_t> others;     // in the tensor's order
};

/// `tensor` is one of the view's. By the attributes of the coordinates (axis, standard_name,
/// units), else by the names, else by the sizes: a last dimension that is short beside the ones
/// before it holds channels. Precondition: two dimensions and the samples.
PictureAxes picture_axes(const View& view, const TensorSpec& tensor, const Dims& shape);

}  // namespace batchfs

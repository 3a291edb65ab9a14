#pragma once
// Which dimensions of a tensor or an array a picture shows as lines, as columns and as colours.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/view.h"

namespace batchfs {

/// The facts that determine a dimension's role.
struct DimFacts {
  std::string name;
  Json attributes = Json::object();  // of its coordinate
  bool is_time = false;              // its coordinate holds times
  bool is_stack = false;             // made by "stack": never part of a picture
};

/// The dimensions, as numbers, that a picture of an array shows as lines and as columns.
struct PlaneAxes {
  std::size_t lines = 0, columns = 0;
};

/// Decides by the attributes of the coordinates (axis, standard_name, units), else by the names,
/// else by the sizes: a last dimension that is short beside the ones before it holds channels.
/// Ignores dimensions before `first`. Precondition: two dimensions from `first` on.
PlaneAxes plane_axes(const std::vector<DimFacts>& dims, const Dims& shape, std::size_t first = 0);

/// Does the name denote a dimension of colours or bands?
bool is_colour_dim(const std::string& name);

/// Is it latitude, or longitude, in degrees?
bool is_latitude(const DimFacts& dim);
bool is_longitude(const DimFacts& dim);

/// Do the lines along this dimension run northwards, so that a map is drawn upside down? `values`:
/// of its coordinate.
bool goes_north(const std::string& dim, const NdArray& values);

/// Numbers of a tensor's dimensions, without dimension 0, the samples.
struct PictureAxes {
  std::size_t lines = 0, columns = 0;
  std::optional<std::size_t> colours;  // red, green, blue; further entries are not shown
  std::vector<std::size_t> others;     // in the tensor's order
};

/// Like plane_axes(). `tensor` is one of the view's. Precondition: two dimensions and the samples.
PictureAxes picture_axes(const View& view, const TensorSpec& tensor, const Dims& shape);

}  // namespace batchfs

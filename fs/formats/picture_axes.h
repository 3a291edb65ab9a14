#pragma once
// Which dimensions of a tensor or an array a picture shows as lines, as columns and as colours.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

/// What tells the role of a dimension.
struct DimFacts {
  std::string name;
  Json attributes = Json::object();  // of its coordinate
  bool is_time = false;              // its coordinate holds times
  bool is_stack = false;             // made by "stack": it is never a part of a picture
};

/// The dimensions, as numbers, that a picture of an array shows as lines and as columns.
struct PlaneAxes {
  std::size_t lines = 0, columns = 0;
};

/// By the attributes of the coordinates (axis, standard_name, units), else by the names, else by
/// the sizes: a last dimension that is short beside the ones before it holds channels. Dimensions
/// before `first` are no part of it. Precondition: two dimensions from `first` on.
PlaneAxes plane_axes(const std::vector<DimFacts>& dims, const Dims& shape, std::size_t first = 0);

/// Is it the name of a dimension of colours or bands?
bool is_colour_dim(const std::string& name);

/// Is it latitude, or longitude, in degrees?
bool is_latitude(const DimFacts& dim);
bool is_longitude(const DimFacts& dim);

/// Do lines along this dimension go northwards, so that a map is drawn the other way round?
/// `values`: of its coordinate.
bool goes_north(const std::string& dim, const NdArray& values);

/// Numbers of dimensions of a tensor. The samples, dimension 0, are none of them.
struct PictureAxes {
  std::size_t lines = 0, columns = 0;
  std::optional<std::size_t> colours;  // red, green, blue; what follows is not shown
  std::vector<std::size_t> others;     // in the tensor's order
};

/// `tensor` is one of the view's. As plane_axes(). Precondition: two dimensions and the samples.
PictureAxes picture_axes(const View& view, const TensorSpec& tensor, const Dims& shape);

}  // namespace batchfs

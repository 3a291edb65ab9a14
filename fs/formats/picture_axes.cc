#include "fs/formats/picture_axes.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "engine/dataset/labels.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

enum class Role : std::uint8_t { unknown, line, column, other };

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 11> kLines = {
    "y", "nav_lat", "rlat", "northing", "south_north", "row", "rows", "line", "lines", "j", "nj"};
constexpr std::array<std::string_view, 11> kColumns = {
    "x", "nav_lon", "rlon", "easting", "west_east", "col", "cols", "column", "columns", "i", "ni"};
constexpr std::array<std::string_view, 8> kColourDims = {"c",    "channel", "channels", "rgb",
                                                         "rgba", "band",    "bands",    "color"};
constexpr std::array<std::string_view, 16> kOthers = {
    "t",           "z",           "colour",         "level",
    "lev",         "plev",        "pressure_level", "isobaricInhPa",
    "model_level", "depth",       "step",           "member",
    "ensemble",    "realization", "variable",       "prediction_timedelta"};

std::string text_attribute(const DimFacts& dim, const char* name) {
  const auto it = dim.attributes.find(name);
  return it != dim.attributes.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Role role_by_attributes(const DimFacts& dim) {
  const std::string axis = text_attribute(dim, "axis"), name = text_attribute(dim, "standard_name");
  const std::string units = text_attribute(dim, "units");
  if (axis == "Y" || name == "latitude" || name == "grid_latitude" ||
      name == "projection_y_coordinate" || units == "degrees_north")
    return Role::line;
  if (axis == "X" || name == "longitude" || name == "grid_longitude" ||
      name == "projection_x_coordinate" || units == "degrees_east")
    return Role::column;
  return axis == "Z" || axis == "T" || dim.is_time ? Role::other : Role::unknown;
}

/// `has_width`: a height counts as a level unless there is a width beside it.
Role role_of(const DimFacts& dim, bool has_width) {
  if (dim.is_stack) return Role::other;
  if (const Role role = role_by_attributes(dim); role != Role::unknown) return role;
  const std::string& name = dim.name;
  if (is_one_of(name, kLines) || name.starts_with("lat")) return Role::line;
  if (is_one_of(name, kColumns) || name.starts_with("lon")) return Role::column;
  if (has_width && name == "height") return Role::line;
  if (has_width && name == "width") return Role::column;
  if (is_colour_dim(name) || is_one_of(name, kOthers) || name == "height" ||
      name.starts_with("time"))
    return Role::other;
  return Role::unknown;
}

/// Facts about each dimension of a tensor.
std::vector<DimFacts> facts_of(const View& view, const TensorSpec& tensor) {
  std::vector<DimFacts> result;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    DimFacts dim{tensor.dims[d], Json::object(), false, static_cast<int>(d) == tensor.stack_axis};
    for (const ViewCoordinate& coordinate : view.coordinates())
      if (coordinate.name == dim.name && role_by_attributes(dim) == Role::unknown) {
        dim.attributes = coordinate.attributes;
        dim.is_time = coordinate.values->type.kind == Kind::datetime ||
                      coordinate.values->type.kind == Kind::timedelta;
      }
    result.push_back(std::move(dim));
  }
  return result;
}

/// The last two, unless one of them is short beside one before: then the two longest.
std::pair<std::size_t, std::size_t> pair_by_size(const std::vector<std::size_t>& dims,
                                                 const Dims& shape) {
  const std::pair last(dims[dims.size() - 2], dims.back());
  std::vector<std::size_t> by_size = dims;
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return shape[a] != shape[b] ? shape[a] > shape[b] : a > b;
  });
  constexpr std::int64_t kShort = 4;
  if (std::min(shape[last.first], shape[last.second]) * kShort >= shape[by_size[1]]) return last;
  return std::minmax(by_size[0], by_size[1]);
}

/// Values from 0 to 255: stored as bytes, and neither scaled nor normalised. Floats may hold them:
/// xarray's rules make floats of integers that have a fill value.
bool holds_bytes(const View& view, const TensorSpec& tensor) {
  const auto number = static_cast<std::uint32_t>(&tensor - view.tensors().data());
  bool any = false;  // stays false if the channels are made
  for (const auto& [use, converter] : view.tensor_set().converters) {
    if (use.first != number) continue;
    any = true;
    const Variable& variable = *view.variables()[use.second];
    const DataType& stored = variable.cf.stored;
    if (stored.kind != Kind::unsigned_int || stored.itemsize != 1 || variable.cf.has_scale ||
        variable.cf.has_offset || converter->finish().normalization)
      return false;
  }
  return any && (tensor.type.is_float() || tensor.type.kind == Kind::unsigned_int);
}

bool are_colours(const View& view, const TensorSpec& tensor, const Dims& shape, std::size_t dim) {
  if ((shape[dim] != 3 && shape[dim] != 4) || !holds_bytes(view, tensor)) return false;
  if (static_cast<int>(dim) != tensor.stack_axis)
    return is_colour_dim(tensor.dims[dim]) || dim + 1 == shape.size();
  const auto is_named = [&](std::size_t i, const char* letter, const char* word) {
    return tensor.channels.size() > i &&
           (tensor.channels[i] == letter || tensor.channels[i] == word);
  };
  return is_named(0, "r", "red") && is_named(1, "g", "green") && is_named(2, "b", "blue");
}

}  // namespace

bool is_colour_dim(const std::string& name) { return is_one_of(name, kColourDims); }

bool is_latitude(const DimFacts& dim) {
  const std::string units = text_attribute(dim, "units");
  if (text_attribute(dim, "standard_name") == "latitude" || units == "degrees_north") return true;
  return (dim.name == "lat" || dim.name == "latitude") && units.empty();
}

bool is_longitude(const DimFacts& dim) {
  const std::string units = text_attribute(dim, "units");
  if (text_attribute(dim, "standard_name") == "longitude" || units == "degrees_east") return true;
  return (dim.name == "lon" || dim.name == "longitude") && units.empty();
}

bool goes_north(const std::string& dim, const NdArray& values) {
  if (dim != "y" && dim.rfind("lat", 0) != 0 && dim != "northing") return false;
  if (values.shape.size() != 1 || values.shape[0] < 2) return false;
  if (!values.type.is_integer() && values.type.kind != Kind::floating) return false;
  return label_number(values, 0) < label_number(values, 1);
}

PlaneAxes plane_axes(const std::vector<DimFacts>& dims, const Dims& shape, std::size_t first) {
  const bool has_width = std::any_of(dims.begin(), dims.end(),
                                     [](const DimFacts& dim) { return dim.name == "width"; });
  std::vector<std::size_t> unknown, all;
  std::optional<std::size_t> line, column;
  for (std::size_t d = first; d < shape.size(); ++d) {
    all.push_back(d);
    const Role role = role_of(dims[d], has_width);
    if (role == Role::unknown && shape[d] != 1) unknown.push_back(d);
    if (role == Role::line) line = d;
    if (role == Role::column) column = d;
  }
  // One is known: the other is the last that may be, whatever it is called.
  const auto other_than = [&](std::size_t known) {
    if (!unknown.empty()) return unknown.back();
    return all.back() != known ? all.back() : all[all.size() - 2];
  };
  if (line && column) return {*line, *column};
  if (line) return {*line, other_than(*line)};
  if (column) return {other_than(*column), *column};
  const auto [lines, columns] = pair_by_size(unknown.size() >= 2 ? unknown : all, shape);
  return {lines, columns};
}

PictureAxes picture_axes(const View& view, const TensorSpec& tensor, const Dims& shape) {
  const PlaneAxes plane = plane_axes(facts_of(view, tensor), shape, 1);
  PictureAxes axes{plane.lines, plane.columns, {}, {}};
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if (d == axes.lines || d == axes.columns) continue;
    if (!axes.colours && are_colours(view, tensor, shape, d))
      axes.colours = d;
    else
      axes.others.push_back(d);
  }
  return axes;
}

}  // namespace batchfs

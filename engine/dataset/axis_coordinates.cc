#include "engine/dataset/axis_coordinates.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/zarr/node_path.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxPositions = INT64_C(1) << 27;

/// The group of a variable "labels/cells:0"; empty: the view's own.
std::string group_of(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? std::string() : name.substr(0, colon);
}

std::string described(const ArrayAxis& axis) {
  if (axis.labels != nullptr) return fmt::format("labels from '{}' on", axis.labels->front());
  if (!axis.has_values) return "no positions";
  return fmt::format("{} * i + {}{}{}", axis.scale, axis.translation, axis.unit.empty() ? "" : " ",
                     axis.unit);
}

Variable coordinate_of(const Variable& variable, std::size_t d, const ArrayAxis& axis) {
  std::size_t longest = 1;
  if (axis.labels != nullptr)
    for (const std::string& label : *axis.labels)
      longest = std::max(longest, code_points(label).size());
  ArrayMetadata metadata;
  metadata.path = join_path(parent_group(variable.metadata->path), axis.name);
  metadata.zarr_format = variable.metadata->zarr_format;
  metadata.shape = metadata.chunk_shape = {variable.shape[d]};
  metadata.type = axis.labels != nullptr
                      ? make_type(Kind::unicode, static_cast<std::uint32_t>(4 * longest))
                  : axis.whole ? make_type(Kind::signed_int, 8)
                               : float64();
  metadata.axes = {axis};
  Variable coordinate;
  coordinate.name = axis.name;
  coordinate.axis = std::make_shared<const ArrayAxis>(axis);
  coordinate.dims = {axis.name};
  coordinate.shape = metadata.shape;
  coordinate.cf = raw_decoding(metadata);
  coordinate.is_coordinate = true;
  if (!axis.unit.empty()) coordinate.attributes["units"] = axis.unit;
  coordinate.metadata = std::make_shared<const ArrayMetadata>(std::move(metadata));
  return coordinate;
}

}  // namespace

std::vector<Variable> axis_coordinates(
    const std::vector<Variable>& variables,
    const std::function<bool(const std::string& name)>& is_stored) {
  std::vector<Variable> coordinates;
  std::map<std::string, std::pair<const ArrayAxis*, const Variable*>> known;
  for (const Variable& variable : variables) {
    const std::vector<ArrayAxis>& axes = variable.metadata->axes;
    for (std::size_t d = 0; d < std::min(axes.size(), variable.dims.size()); ++d) {
      const ArrayAxis& axis = axes[d];
      if (!axis.has_coordinate() || axis.name != variable.dims[d] || is_stored(axis.name)) continue;
      const auto [first, is_new] = known.emplace(axis.name, std::pair(&axis, &variable));
      if (is_new)
        coordinates.push_back(coordinate_of(variable, d, axis));
      else if (!first->second.first->has_coordinate_of(axis))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("dimension '{}' has the coordinate {} in '{}' and {} in '{}': a "
                                "view has one coordinate for each dimension; take them in views "
                                "of their own",
                                axis.name, described(*first->second.first),
                                first->second.second->name, described(axis), variable.name));
    }
  }
  return coordinates;
}

NdArray axis_values(const Variable& coordinate) {
  const std::int64_t count = coordinate.shape[0];
  if (count > kMaxPositions)
    throw Error(ErrorCode::not_supported,
                fmt::format("the coordinate '{}' has {} values; at most {} are supported; use "
                            "positions, as in '#0:#4'",
                            coordinate.name, count, kMaxPositions));
  const ArrayAxis& axis = *coordinate.axis;
  static_assert(sizeof(double) == sizeof(std::int64_t));
  NdArray result{axis.whole ? make_type(Kind::signed_int, 8) : float64(),
                 {count},
                 Buffer(static_cast<std::size_t>(count) * sizeof(double))};
  std::byte* out = result.data.data();
  for (std::int64_t i = 0; i < count; ++i, out += sizeof(double)) {
    const double scaled = axis.scale * static_cast<double>(i);
    const double value = scaled + axis.translation;
    const auto whole = static_cast<std::int64_t>(axis.whole ? value : 0);
    std::memcpy(out, axis.whole ? static_cast<const void*>(&whole) : &value, sizeof value);
  }
  return result;
}

void separate_single_dims(std::vector<Variable>& variables,
                          const std::map<std::string, std::string>& others) {
  std::set<std::string> longer;  // dimensions that have a length other than 1
  for (const Variable& variable : variables)
    for (std::size_t d = 0; d < variable.dims.size(); ++d)
      if (variable.shape[d] != 1) longer.insert(variable.dims[d]);
  for (Variable& variable : variables) {
    const std::string group = group_of(variable.name);
    if (group.empty() || !others.contains(variable.name)) continue;
    for (std::size_t d = 0; d < variable.dims.size(); ++d)
      if (variable.shape[d] == 1 && longer.contains(variable.dims[d]))
        variable.dims[d] = group + ":" + variable.dims[d];
  }
}

}  // namespace batchfs

#include "engine/view/made/earth_coordinate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"

namespace batchfs {

namespace {

/// Limits the memory of a coordinate (its degrees, their sines and cosines) to a share of all.
constexpr std::uint64_t kBytesOfCell = 3 * sizeof(double);
constexpr std::uint64_t kShareOfMemory = 4;

std::string attribute(const Variable& variable, const char* name) {
  const auto it = variable.attributes.find(name);
  return it != variable.attributes.end() && it->is_string() ? it->get<std::string>()
                                                            : std::string();
}

bool is_one_of(const std::string& text, const std::vector<std::string>& choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

std::vector<std::string> own_units(EarthAxis axis) {
  if (axis == EarthAxis::latitude)
    return {"degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"};
  return {"degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"};
}

std::string axis_name(EarthAxis axis) {
  return axis == EarthAxis::latitude ? "latitude" : "longitude";
}

/// How surely the variable holds them: 3 by its units, 2 by its standard name, 1 by its name, 0.
int rank_of(const Variable& variable, EarthAxis axis) {
  if (!variable.is_readable() || variable.dims.empty()) return 0;
  const DataType& type = variable.cf.decoded;
  if (!type.is_float() && !type.is_integer()) return 0;
  const std::string name = axis_name(axis);
  if (is_one_of(attribute(variable, "units"), own_units(axis)) && variable.is_coordinate) return 3;
  if (attribute(variable, "standard_name") == name) return 2;
  return is_one_of(variable.name, {name, name.substr(0, 3)}) ? 1 : 0;
}

bool has_degrees(const Variable& variable, EarthAxis axis) {
  const std::string units = attribute(variable, "units");
  return is_one_of(units, own_units(axis)) || is_one_of(units, {"degrees", "degree", "deg"});
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));  // not NaN
  return largest;
}

/// No radians of a latitude are more than a quarter of a turn, of a longitude more than one.
bool are_no_radians(const std::vector<double>& values, EarthAxis axis) {
  return largest_of(values) > (axis == EarthAxis::latitude ? 0.5 : 2) * std::numbers::pi * 1.001;
}

std::vector<double> values_of_variable(const Dataset& dataset, const Variable& variable,
                                       const std::string& path) {
  const std::uint64_t limit = dataset.memory_limit() / kShareOfMemory / kBytesOfCell;
  if (static_cast<std::uint64_t>(element_count(variable.shape)) > limit)
    throw Error(ErrorCode::no_memory,
                fmt::format("{}: '{}' has more than {} values, a quarter of --memory; give more",
                            path, variable.name, limit));
  const bool is_index = dataset.index_of(variable.dims[0]) == &variable;
  NdArray own;
  if (!is_index) own = read_variable(variable);
  const NdArray& values = is_index ? dataset.index_values(variable.dims[0]) : own;
  std::vector<double> result;
  for (std::int64_t i = 0; i < element_count(variable.shape); ++i)
    result.push_back(static_cast<double>(label_number(values, i)));
  return result;
}

/// Numbers without units are degrees where they, or those of the other axis, can be nothing else.
void check_units(const Dataset& dataset, const Variable& variable, EarthAxis axis,
                 const std::vector<double>& values, const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' {}", path, variable.name, why));
  };
  const std::string units = attribute(variable, "units");
  if (units.empty()) {
    if (are_no_radians(values, axis)) return;
    const EarthAxis other_axis =
        axis == EarthAxis::latitude ? EarthAxis::longitude : EarthAxis::latitude;
    const Variable* other = find_earth_variable(dataset, other_axis);
    if (other != nullptr &&
        (has_degrees(*other, other_axis) ||
         (attribute(*other, "units").empty() &&
          are_no_radians(values_of_variable(dataset, *other, path), other_axis))))
      return;
    throw fail(
        "has no units; if its numbers are degrees, say so: \"units\": \"degrees\" beside "
        "\"make\"");
  }
  if (!has_degrees(variable, axis))
    throw fail(fmt::format("is in '{}', and {}s must be in degrees", units, axis_name(axis)));
}

}  // namespace

const Variable* find_earth_variable(const Dataset& dataset, EarthAxis axis) {
  const Variable* best = nullptr;
  int rank = 0;
  for (const Variable& variable : dataset.variables()) {
    // Among equals, prefers the coordinate of a dimension.
    const int own = rank_of(variable, axis) * 2 +
                    (variable.dims.size() == 1 && variable.dims[0] == variable.name ? 1 : 0);
    if (own <= std::max(rank, 1)) continue;
    rank = own;
    best = &variable;
  }
  return best;
}

std::shared_ptr<const EarthCoordinate> read_earth_coordinate(const Dataset& dataset, EarthAxis axis,
                                                             bool in_degrees,
                                                             const std::string& path) {
  const Variable* variable = find_earth_variable(dataset, axis);
  if (variable == nullptr)
    throw Error(ErrorCode::not_found,
                fmt::format("{}: the store has no {}s: no coordinate in {} and none called {}",
                            path, axis_name(axis), own_units(axis).front(), axis_name(axis)));
  auto result = std::make_shared<EarthCoordinate>();
  result->name = variable->name;
  result->dims = variable->dims;
  result->shape = variable->shape;
  result->degrees = values_of_variable(dataset, *variable, path);
  if (!in_degrees || !attribute(*variable, "units").empty())
    check_units(dataset, *variable, axis, result->degrees, path);
  const double largest = largest_of(result->degrees);
  if (largest > (axis == EarthAxis::latitude ? 90.001 : 720.001))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' has the value {}, which is not a {} in degrees", path,
                            variable->name, largest, axis_name(axis)));
  return result;
}

}  // namespace batchfs

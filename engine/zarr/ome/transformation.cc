#include "engine/zarr/ome/transformation.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/base/printable.h"

namespace batchfs {

namespace {

/// Limit for one list. Files have two.
constexpr std::size_t kMaxTransformations = 32;
/// Sequences inside sequences.
constexpr int kMaxNesting = 4;

void set_unknown(AxisTransformation& result, const JsonRef& place, const std::string& why) {
  if (result.unknown.empty()) result.unknown = place.error(why).why();
}

std::vector<double> numbers(const JsonRef& list, std::size_t axes) {
  if (!list.is_array()) throw list.error("expected a list");
  if (list.value().size() != axes)
    throw list.error(fmt::format("{} numbers for {} axes", list.value().size(), axes));
  std::vector<double> result;
  for (const JsonRef& element : list.elements()) {
    const double number = element.number();
    if (!std::isfinite(number)) throw element.error(fmt::format("{} is not finite", number));
    result.push_back(number);
  }
  return result;
}

void apply_one(const JsonRef& json, AxisTransformation& result, int nesting);

void apply_list(const JsonRef& list, AxisTransformation& result, int nesting) {
  if (!list.is_array()) throw list.error("expected a list");
  if (list.value().size() > kMaxTransformations)
    throw list.error(fmt::format("{} transformations; at most {} are supported",
                                 list.value().size(), kMaxTransformations),
                     ErrorCode::not_supported);
  for (const JsonRef& element : list.elements()) apply_one(element, result, nesting);
}

void apply_one(const JsonRef& json, AxisTransformation& result, int nesting) {
  const JsonRef type_json = json.at("type");
  const std::string type = type_json.string();
  const std::size_t axes = result.scale.size();
  if (type == "identity") return;
  if (type == "sequence") {
    if (nesting == kMaxNesting)
      throw json.error(fmt::format("more than {} sequences inside one another", kMaxNesting),
                       ErrorCode::not_supported);
    return apply_list(json.at("transformations"), result, nesting + 1);
  }
  if (type != "scale" && type != "translation")
    return set_unknown(
        result, type_json,
        fmt::format("the transformation '{}' is not supported", printable(type.substr(0, 64))));
  if (!json.find(type) && json.find("path"))
    return set_unknown(result, json.at("path"), "parameters in an array are not supported");
  const JsonRef list = json.at(type);
  const std::vector<double> parameters = numbers(list, axes);
  for (std::size_t d = 0; d < axes; ++d) {
    if (type == "translation") {
      result.translation[d] += parameters[d];
      continue;
    }
    if (parameters[d] <= 0)
      throw list.elements()[d].error(fmt::format("{} is not above 0", parameters[d]));
    result.scale[d] *= parameters[d];
    result.translation[d] *= parameters[d];
  }
}

}  // namespace

void apply_transformations(const JsonRef& list, AxisTransformation& result) {
  apply_list(list, result, 0);
}

void apply_transformation(const JsonRef& transformation, AxisTransformation& result) {
  apply_one(transformation, result, 0);
}

}  // namespace batchfs

#include "engine/zarr/ome/level.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/base/strings.h"
#include "engine/zarr/ome/units.h"

namespace batchfs {

namespace {

/// More than any image has.
constexpr std::int64_t kMaxNumber = 1 << 20;

/// "0.5 um", "0.5um" or "0.5".
std::optional<LevelChoice::Distance> parse_distance(const std::string& axis,
                                                    const std::string& text) {
  LevelChoice::Distance distance{axis};
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, distance.value);
  if (failed != std::errc() || !std::isfinite(distance.value) || distance.value <= 0)
    return std::nullopt;
  distance.unit.assign(stop, end);
  while (distance.unit.starts_with(' ')) distance.unit.erase(0, 1);
  return distance;
}

constexpr std::string_view kDistance =
    "expected a distance above 0 with its unit, as \"0.5 um\"; without a unit it is in the axis's";

/// How many of the axis's own units the distance is.
double in_units_of(const ArrayAxis& axis, const LevelChoice::Distance& distance) {
  if (distance.unit.empty() || distance.unit == axis.unit) return distance.value;
  const auto wanted = unit_size(distance.unit), own = unit_size(axis.unit);
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("level: the resolution along '{}': {}", axis.name, why));
  };
  if (!wanted) throw fail(fmt::format("'{}' is not a unit of length or time", distance.unit));
  if (axis.unit.empty()) throw fail("the image gives no unit; leave the unit out");
  if (!own || own->of != wanted->of)
    throw fail(fmt::format("the image has '{}', which '{}' cannot be compared with", axis.unit,
                           distance.unit));
  return distance.value * wanted->size / own->size;
}

const ArrayAxis& axis_of(const OmeImage::Level& level, const std::string& name) {
  std::vector<std::string> names;
  for (const ArrayAxis& axis : level.axes) {
    if (axis.name == name && axis.has_values) return axis;
    if (axis.name == name)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("level: the image has no scale along '{}'; give the level's number", name));
    names.push_back(axis.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("level: the image has no axis '{}'{}", name,
                                                       nearest_or_all(name, names)));
}

}  // namespace

LevelChoice parse_level(const JsonRef& json) {
  LevelChoice choice;
  if (!json.is_object()) {
    if (!json.is_number())
      throw json.error(
          "expected the number of a level, or an object as {\"resolution\": {\"x\": \"0.5 um\"}}");
    choice.number = static_cast<std::size_t>(json.integer(0, kMaxNumber));
    return choice;
  }
  json.allow_only({"resolution"});
  const JsonRef resolution = json.at("resolution");
  for (const auto& [axis, value] : resolution.members()) {
    std::optional<LevelChoice::Distance> distance;
    if (value.is_number()) {
      distance = LevelChoice::Distance{axis, value.number(), {}};
      if (!(distance->value > 0) || !std::isfinite(distance->value)) distance.reset();
    } else if (value.is_string()) {
      distance = parse_distance(axis, value.string());
    }
    if (!distance) throw value.error(std::string(kDistance));
    choice.resolution.push_back(*std::move(distance));
  }
  if (choice.resolution.empty()) throw resolution.error("name at least one axis");
  return choice;
}

LevelChoice parse_level(const std::string& text, const std::string& where) {
  LevelChoice choice;
  if (const auto number = parse_exact_number(text);
      number && *number <= static_cast<std::uint64_t>(kMaxNumber)) {
    choice.number = *number;
    return choice;
  }
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    std::optional<LevelChoice::Distance> distance;
    if (equals != std::string::npos && equals > 0)
      distance = parse_distance(part.substr(0, equals), part.substr(equals + 1));
    if (!distance)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("'{}' is neither the number of a level nor a resolution as x=0.5um", text),
          where);
    choice.resolution.push_back(*std::move(distance));
  }
  return choice;
}

std::size_t choose_level(const OmeImage& image, const LevelChoice& choice) {
  if (choice.resolution.empty()) {
    if (choice.number < image.levels.size()) return choice.number;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("level: there is no level {}; the image has {}, from 0 to {}", choice.number,
                    counted(std::ssize(image.levels), "level"), image.levels.size() - 1));
  }
  std::size_t best = 0;
  double least = 0;
  for (std::size_t k = 0; k < image.levels.size(); ++k) {
    double distance = 0;
    for (const LevelChoice::Distance& wanted : choice.resolution) {
      const ArrayAxis& axis = axis_of(image.levels[k], wanted.axis);
      distance += std::fabs(std::log(axis.scale / in_units_of(axis, wanted)));
    }
    if (k > 0 && !(distance < least)) continue;
    best = k;
    least = distance;
  }
  return best;
}

}  // namespace batchfs

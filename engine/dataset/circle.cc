#include "engine/dataset/circle.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

constexpr double kDegrees = 360;

std::string_view attribute(const Variable& variable, const char* name) {
  const auto it = variable.attributes.find(name);
  return it != variable.attributes.end() && it->is_string()
             ? std::string_view(it->get_ref<const std::string&>())
             : std::string_view();
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

double angle(const NdArray& values, std::int64_t i) {
  return static_cast<double>(label_number(values, i));
}

/// Do the values, evenly spaced, fill the circle once?
bool goes_round(const NdArray& values, double period) {
  const std::int64_t n = values.shape[0];
  if (n < 4) return false;
  const double step = (angle(values, n - 1) - angle(values, 0)) / static_cast<double>(n - 1);
  if (!(std::fabs(std::fabs(step) * static_cast<double>(n) - period) < 0.01 * std::fabs(step)))
    return false;
  for (std::int64_t i = 1; i < n; ++i)
    if (!(std::fabs(angle(values, i) - angle(values, i - 1) - step) < 0.01 * std::fabs(step)))
      return false;
  return true;
}

}  // namespace

std::optional<double> period_of(const Variable& index, const NdArray& values) {
  const Kind kind = values.type.kind;
  if (kind != Kind::signed_int && kind != Kind::unsigned_int && kind != Kind::floating)
    return std::nullopt;
  const std::string_view units = attribute(index, "units");
  if (is_one_of(units,
                {"degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"}))
    return kDegrees;
  const bool degrees = is_one_of(units, {"degrees", "degree", "deg"});
  if (!degrees && !units.empty()) return std::nullopt;
  const bool longitude =
      is_one_of(attribute(index, "standard_name"), {"longitude", "grid_longitude"}) ||
      is_one_of(index.name, {"lon", "longitude"}) || (degrees && attribute(index, "axis") == "X");
  return longitude || (degrees && goes_round(values, kDegrees)) ? std::optional(kDegrees)
                                                                : std::nullopt;
}

double circle_rounding(const DataType& type, double period) {
  const int mantissa = !type.is_float() || type.itemsize == 8 ? 40 : type.itemsize == 4 ? 23 : 10;
  return std::ldexp(period, -mantissa) * 0.51;
}

std::vector<std::int64_t> positions_on_circle(const NdArray& values, double period, double from,
                                              double to) {
  const double tolerance = circle_rounding(values.type, period);
  const bool whole = to != from && std::fabs(std::fabs(to - from) - period) <= tolerance;
  const double length = whole ? period : to >= from ? to - from : to - from + period;
  struct Stop {
    double way;  // from `from` upwards
    std::int64_t position;
  };
  std::vector<Stop> stops;
  for (std::int64_t i = 0; i < values.shape[0]; ++i) {
    double way = std::fmod(angle(values, i) - from, period);
    if (way < 0) way += period;
    if (way >= period - tolerance) way = 0;
    if (way <= length + tolerance) stops.push_back({way, i});  // not NaN
  }
  std::stable_sort(stops.begin(), stops.end(),
                   [](const Stop& a, const Stop& b) { return a.way < b.way; });
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0, kept = 0; i < stops.size(); ++i) {
    if (i > 0 && stops[i].way - stops[kept].way <= tolerance) continue;
    kept = i;
    positions.push_back(stops[i].position);
  }
  return positions;
}

bool covers_circle(const NdArray& values, double period, const Positions& positions) {
  const std::int64_t n = positions.size();
  if (n < 2) return false;
  const auto way = [&](std::int64_t from, std::int64_t to) {
    return std::fmod(angle(values, positions[to]) - angle(values, positions[from]) + 2 * period,
                     period);
  };
  const double tolerance = circle_rounding(values.type, period);
  // Downwards the ways are those in the other direction.
  const bool upwards = way(0, 1) <= period / 2;
  double longest = 0;
  for (std::int64_t i = 1; i < n; ++i)
    longest = std::max(longest, upwards ? way(i - 1, i) : way(i, i - 1));
  const double closing = upwards ? way(n - 1, 0) : way(0, n - 1);
  // Where 0 and 360 are both stored, rounding can turn a distance of 0 into a full period.
  return closing <= 1.5 * longest + tolerance || closing >= period - tolerance;
}

}  // namespace batchfs

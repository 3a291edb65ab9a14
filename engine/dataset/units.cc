#include "engine/dataset/units.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace batchfs {

namespace {

/// Spellings of one unit each.
constexpr std::array<std::string_view, 14> kDegrees{
    "degrees",  "degree",  "deg",          "degrees_north", "degree_north", "degrees_N", "degree_N",
    "degreesN", "degreeN", "degrees_east", "degree_east",   "degrees_E",    "degree_E",  "degreeE"};
constexpr std::array<std::string_view, 5> kMetres{"m", "metre", "metres", "meter", "meters"};
constexpr std::array<std::string_view, 6> kKilometres{"km",        "kilometre",  "kilometres",
                                                      "kilometer", "kilometers", "Km"};
constexpr std::array<std::string_view, 8> kHectopascals{
    "hPa", "hectopascal", "hectopascals", "mb", "mbar", "mbars", "millibar", "millibars"};
constexpr std::array<std::string_view, 4> kKelvin{"K", "kelvin", "Kelvin", "degK"};
constexpr std::array<std::string_view, 4> kNone{"1", "", "dimensionless", "-"};

template <std::size_t N>
bool has(const std::array<std::string_view, N>& spellings, std::string_view text) {
  return std::find(spellings.begin(), spellings.end(), text) != spellings.end();
}

/// Maps the spellings of a unit to one of them.
std::string_view one_spelling(std::string_view text) {
  if (has(kDegrees, text)) return kDegrees[0];
  if (has(kMetres, text)) return kMetres[0];
  if (has(kKilometres, text)) return kKilometres[0];
  if (has(kHectopascals, text)) return kHectopascals[0];
  if (has(kKelvin, text)) return kKelvin[0];
  return has(kNone, text) ? kNone[0] : text;
}

/// Without spaces around it.
std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::string units_of(const Variable& variable) {
  const auto units = variable.attributes.find("units");
  return units != variable.attributes.end() && units->is_string() ? units->get<std::string>() : "";
}

bool are_same_units(const std::string& one, const std::string& other) {
  return one_spelling(trimmed(one)) == one_spelling(trimmed(other));
}

}  // namespace batchfs

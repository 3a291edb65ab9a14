#pragma once
// Units of lengths of time, as views, selections and messages write them: "6h", "-30min", "1d".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace batchfs {

struct LengthUnit {
  std::string_view name;
  std::int64_t nanoseconds;
};

/// The first ones of a length are those that texts are written in, largest first; W, D and m are
/// numpy's.
inline constexpr LengthUnit kLengthUnits[] = {{"w", 604'800'000'000'000},
                                              {"d", 86'400'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"min", 60'000'000'000},
                                              {"s", 1'000'000'000},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1},
                                              {"W", 604'800'000'000'000},
                                              {"D", 86'400'000'000'000},
                                              {"m", 60'000'000'000}};

/// nullopt: not such a unit.
inline std::optional<std::int64_t> length_unit(std::string_view name) {
  for (const LengthUnit& unit : kLengthUnits)
    if (unit.name == name) return unit.nanoseconds;
  return std::nullopt;
}

/// In the largest unit that divides it: "1d", "-6h", "210min". Weeks are rarely meant where seven
/// days stand.
inline std::string length_text(std::int64_t nanoseconds) {
  if (nanoseconds == 0) return "0h";
  for (const LengthUnit& unit : kLengthUnits)
    if (unit.name != "w" && nanoseconds % unit.nanoseconds == 0)
      return std::to_string(nanoseconds / unit.nanoseconds).append(unit.name);
  return {};
}

}  // namespace batchfs

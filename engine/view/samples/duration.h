#pragma once
// Lengths of time as a view writes them: "6h", "-12h", "1mo".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace batchfs {

/// Either months of the calendar or nanoseconds; one of them is 0.
struct Duration {
  std::int64_t months = 0;
  std::int64_t nanoseconds = 0;

  bool operator==(const Duration&) const = default;
  bool is_zero() const { return months == 0 && nanoseconds == 0; }
};

/// A whole number and a unit: y, mo, w, d, h, min (or m), s, ms, us, ns; W and D as numpy has them.
/// nullopt for any other text, and beyond 292 years in a unit of fixed length or 100,000 years.
std::optional<Duration> parse_duration(std::string_view text);

/// A string that is a duration. Throws with the JSON path.
Duration read_duration(const JsonRef& json);

/// In the largest unit that divides it: "1d", "-6h", "1y".
std::string duration_text(const Duration& duration);

}  // namespace batchfs

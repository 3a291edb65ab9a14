#pragma once
// The channels of a view that no store holds: functions of time and place, and of other channels.
// Their formulas: "Channels made on the fly" in batchfs-view(5).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace batchfs {

enum class Made : std::uint8_t {
  sin_latitude,
  cos_latitude,
  sin_longitude,
  cos_longitude,
  sin_julian_day,
  cos_julian_day,
  sin_local_time,
  cos_local_time,
  year_progress,
  sin_year_progress,
  cos_year_progress,
  day_progress,
  sin_day_progress,
  cos_day_progress,
  cos_zenith,
  insolation,
  toa_radiation,
  constant,
  // Functions of other channels:
  hypot,
  sum,
  difference,
  product,
  ratio,
};

struct MadeKind {
  std::string_view name;  // as a view writes it
  Made made;
  bool needs_time, needs_latitude, needs_longitude;
  bool is_scaled;  // sines, cosines and constants: "normalize" leaves them unless it lists them
  std::size_t min_operands = 0, max_operands = 0;  // variables that it is made of
};

/// nullptr: there is no such channel. Some have two names.
const MadeKind* find_made_kind(std::string_view name);
std::vector<std::string> made_kind_names();

}  // namespace batchfs

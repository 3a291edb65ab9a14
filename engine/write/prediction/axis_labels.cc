#include "engine/write/prediction/axis_labels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

struct Unit {
  const char* name;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 7> kUnits{{{"days", 86'400'000'000'000},
                                      {"hours", 3'600'000'000'000},
                                      {"minutes", 60'000'000'000},
                                      {"seconds", 1'000'000'000},
                                      {"milliseconds", 1'000'000},
                                      {"microseconds", 1'000},
                                      {"nanoseconds", 1}}};
constexpr std::int64_t kMissing = std::numeric_limits<std::int64_t>::min();

/// Nanoseconds of each; nullopt: not a time.
using Times = std::vector<std::optional<std::int64_t>>;

Times times_of(const AxisLabels& labels) {
  Times times(static_cast<std::size_t>(labels.size()));
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::int64_t count = 0;
    std::memcpy(&count, labels.values.data() + i * sizeof count, sizeof count);
    const std::optional<__int128> exact = time_nanoseconds(count, labels.type);
    if (!exact) continue;
    if (*exact <= kMissing || *exact > std::numeric_limits<std::int64_t>::max())
      throw Error(ErrorCode::not_supported,
                  "labels outside of the years 1677 to 2262 cannot be written as times; select "
                  "others in the view");
    times[i] = static_cast<std::int64_t>(*exact);
  }
  return times;
}

/// The largest unit that all times are multiples of, counted from `first`.
const Unit& coarsest(const Times& times, std::int64_t first) {
  return *std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& unit) {
    return std::all_of(times.begin(), times.end(), [&](const std::optional<std::int64_t>& time) {
      return !time || (static_cast<__int128>(*time) - first) % unit.nanoseconds == 0;
    });
  });
}

CoordinateLabels stored_times(const AxisLabels& labels) {
  const Times times = times_of(labels);
  const bool is_date = labels.type.kind == Kind::datetime;
  std::optional<std::int64_t> first;
  bool has_missing = false;
  for (const auto& time : times) {
    has_missing = has_missing || !time;
    if (time && (!first || *time < *first)) first = time;
  }
  CoordinateLabels result{make_type(Kind::signed_int, 8), {}, {}, labels.attributes};
  // Whole seconds, which every reader of reference dates understands.
  std::int64_t origin = 0, seconds = 0;
  if (is_date && first) {
    seconds = *first / kNanosecondsPerSecond - (*first % kNanosecondsPerSecond < 0 ? 1 : 0);
    // The second before the first moment of int64 is out of its range; count from the next one.
    if (seconds < kMissing / kNanosecondsPerSecond) ++seconds;
    origin = seconds * kNanosecondsPerSecond;
  }
  const auto& unit = coarsest(times, origin);
  if (is_date) {
    const std::int64_t day = seconds / 86400 - (seconds % 86400 < 0 ? 1 : 0);
    const std::int64_t of_day = seconds - day * 86400;
    std::int64_t year = 0;
    int month = 0, month_day = 0;
    civil_from_days(day, year, month, month_day);
    result.attributes["units"] =
        fmt::format("{} since {:04}-{:02}-{:02} {:02}:{:02}:{:02}", unit.name, year, month,
                    month_day, of_day / 3600, of_day / 60 % 60, of_day % 60);
    result.attributes["calendar"] = "proleptic_gregorian";
  } else {
    result.attributes["units"] = unit.name;
    result.attributes["dtype"] = "timedelta64[ns]";
  }
  if (has_missing) result.attributes["_FillValue"] = kMissing;
  result.values.resize(times.size() * sizeof kMissing);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::int64_t steps =
        times[i] ? static_cast<std::int64_t>((static_cast<__int128>(*times[i]) - origin) /
                                             unit.nanoseconds)
                 : kMissing;
    std::memcpy(result.values.data() + i * sizeof steps, &steps, sizeof steps);
  }
  return result;
}

/// Text of bytes that may not be UTF-8: invalid ones become U+FFFD.
std::string decoded(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t size = first_code_point(bytes);
    if (size > 0)
      text += bytes.substr(0, size);
    else
      append_utf8(text, 0xfffd);
    bytes.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return text;
}

CoordinateLabels stored_texts(const AxisLabels& labels) {
  CoordinateLabels result{make_type(Kind::variable_string, 0), {}, {}, labels.attributes};
  for (std::int64_t i = 0; i < labels.size(); ++i) {
    const std::byte* element =
        labels.values.data() + static_cast<std::size_t>(i) * labels.type.itemsize;
    std::string text;
    if (labels.type.kind == Kind::bytes) {
      std::string_view bytes(reinterpret_cast<const char*>(element), labels.type.itemsize);
      while (bytes.ends_with('\0')) bytes.remove_suffix(1);
      text = decoded(bytes);
    } else {
      std::u32string points(labels.type.itemsize / 4, U'\0');
      std::memcpy(points.data(), element, points.size() * 4);
      while (points.ends_with(U'\0')) points.pop_back();
      for (const char32_t point : points) append_utf8(text, point);
    }
    result.strings.push_back(std::move(text));
  }
  return result;
}

}  // namespace

AxisLabels AxisLabels::at(std::span<const std::int64_t> positions) const {
  AxisLabels result{type, std::vector<std::byte>(positions.size() * type.itemsize), attributes};
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::memcpy(result.values.data() + i * type.itemsize,
                values.data() + static_cast<std::size_t>(positions[i]) * type.itemsize,
                type.itemsize);
  return result;
}

CoordinateLabels AxisLabels::stored() const {
  if (type.kind == Kind::datetime || type.kind == Kind::timedelta) return stored_times(*this);
  if (type.kind == Kind::bytes || type.kind == Kind::unicode) return stored_texts(*this);
  return {type, values, {}, attributes};
}

}  // namespace batchfs

#include "engine/view/samples/every.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/dataset/labels.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

/// Nanoseconds since the calendar's 1970-01-01 of the date that the coordinate's units count from;
/// of lengths of time 0.
__int128 reference_of(const CfDecoding& cf) {
  if (cf.counts_from)
    return static_cast<__int128>(cf.counts_from->seconds) * kNanosecondsPerSecond +
           cf.counts_from->nanoseconds;
  if (cf.time != CfDecoding::Time::datetime) return 0;
  return static_cast<__int128>(cf.origin_seconds) * kNanosecondsPerSecond +
         cf.origin_rest * (kNanosecondsPerSecond / cf.per_second);
}

__int128 origin_of(const WindowSpec& window, const Dataset& dataset, const TimeSteps& times) {
  if (!window.origin) return reference_of(dataset.index(window.dim).cf);
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", window.origin_path, why));
  };
  if (*window.origin == "first") {
    if (times.size() == 0 || times.is_missing(0))
      throw fail(fmt::format("the first label of '{}' is missing; write a date", window.dim));
    return times.nanoseconds(0);
  }
  if (!times.has_dates()) {
    if (const auto duration = parse_duration(*window.origin); duration && duration->months == 0)
      return duration->nanoseconds;
    throw fail(fmt::format("'{}' is not a length of time, which '{}' has; write \"first\" or 6h",
                           *window.origin, window.dim));
  }
  if (const auto date = parse_date(*window.origin, times.calendar())) return date->first;
  throw fail(fmt::format("'{}' is not a date{}; write \"first\" or 2000-01-01T06", *window.origin,
                         parse_date_text(*window.origin)
                             ? fmt::format(" of the calendar {}", calendar_name(times.calendar()))
                             : ""));
}

}  // namespace

std::shared_ptr<const std::vector<std::int64_t>> starts_every(
    const WindowSpec& window, const Dataset& dataset, const TimeSteps& times,
    std::pair<std::int64_t, std::int64_t> range) {
  const std::string path = window.every_path;
  if (window.every->months != 0 && !times.has_dates())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is of a calendar, and '{}' has lengths of time", path,
                            duration_text(*window.every), window.dim));
  const __int128 origin = origin_of(window, dataset, times);
  GrowingStarts starts(dataset, path);
  const std::int64_t length = times.size(), room = length - window.size - range.second;
  bool has_multiple = false;
  const auto is_start = [&](std::int64_t i) {
    return times.is_multiple_from(i, origin, *window.every);
  };
  for (std::int64_t i = 0; i < length; ++i) {
    if (!is_start(i)) continue;
    has_multiple = true;
    if (i < -range.first) continue;
    if (i <= room) {
      starts.push_back(i);
      continue;
    }
    // One window over the edge, if anything is left after the last whole one.
    const bool is_left = starts.size() == 0 || starts.starts().back() < room;
    if (window.edge != WindowSpec::Edge::drop && is_left && i + range.second < length)
      starts.push_back(i);
    break;
  }
  if (starts.size() > 0) return starts.take();
  if (has_multiple)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: no window of {} that begins at a multiple of {} fits: the "
                    "selection has {} positions{}",
                    path, window.size, duration_text(*window.every), length,
                    range.first != 0 || range.second != 0 ? " and the offsets need more" : ""));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: none of the {} of '{}' lies a multiple of {} after {}; they begin "
                          "with {}: \"origin\": \"first\" counts from it",
                          path, counted(length, "label"), window.dim, duration_text(*window.every),
                          times.has_dates()
                              ? format_moment(times.calendar(), origin)
                              : duration_text({.nanoseconds = static_cast<std::int64_t>(origin)}),
                          length > 0 ? times.label(0) : "nothing"));
}

}  // namespace batchfs

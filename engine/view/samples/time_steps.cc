#include "engine/view/samples/time_steps.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/rounding.h"
#include "engine/dataset/cf.h"
#include "engine/dataset/cf_time.h"
#include "engine/dataset/labels.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

constexpr std::int64_t kDaySeconds = 86400;

}  // namespace

bool has_times(const Dataset& dataset, const std::string& dim) {
  const Variable* index = dataset.index_of(dim);
  if (index == nullptr) return false;
  const DataType& type = index->cf.decoded;
  if (type.kind != Kind::datetime && type.kind != Kind::timedelta)
    return index->cf.counts_from.has_value();
  return unit_nanoseconds(type) ||
         (type.kind == Kind::datetime && (type.unit == "Y" || type.unit == "M"));
}

TimeSteps::TimeSteps(const Dataset& dataset, const std::string& dim, const Positions& positions,
                     const std::string& path) {
  const Variable* index = dataset.index_of(dim);
  if (!has_times(dataset, dim))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' has no coordinate of times{}", path, dim,
                            index == nullptr
                                ? ""
                                : fmt::format(": it is {}{}{}", index->cf.decoded.name(),
                                              index->cf.note.empty() ? "" : ", ", index->cf.note)));
  check_restricted_length(dataset, dim, path);
  const Dataset::Index& labels = dataset.index(dim);
  const DataType& type = labels.values.type;
  times_.reserve(static_cast<std::size_t>(positions.size()));
  if (type.kind == Kind::datetime || type.kind == Kind::timedelta)
    take_times(labels.values, positions);
  else if (const auto times = TimeAxis::of(labels))
    take_numbers(*times, positions);
  descending_ = times_.size() > 1 && times_.back() < times_.front();
  monthly_ = calendar_ && find_monthly();
}

bool TimeSteps::find_monthly() const {
  for (std::int64_t i = 1; i < size(); ++i)
    if (!is_missing(i - 1) && !is_missing(i) && month(at(i - 1)) == month(at(i))) return false;
  return true;
}

void TimeSteps::take_times(const NdArray& values, const Positions& positions) {
  calendar_ = values.type.kind == Kind::datetime;
  // Counts of seconds, or of the coordinate's own unit below that.
  const std::optional<std::int64_t> stored = unit_nanoseconds(values.type);
  if (!stored || *stored % kNanosecondsPerSecond == 0)
    unit_ = kNanosecondsPerSecond;
  else if (*stored == 1'000'000 || *stored == 1'000)
    unit_ = *stored;
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    const std::int64_t count = label_count(values, positions[i]);
    std::int64_t time = INT64_MIN;
    if (stored) {
      if (count != INT64_MIN && __builtin_mul_overflow(count, *stored / unit_, &time))
        time = INT64_MIN;
    } else if (const auto nanoseconds = time_nanoseconds(count, values.type)) {
      time = static_cast<std::int64_t>(*nanoseconds / kNanosecondsPerSecond);
    }
    times_.push_back(time);
  }
}

void TimeSteps::take_numbers(const TimeAxis& times, const Positions& positions) {
  kind_ = times.calendar();
  unit_ = 1000;  // as cftime has them
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    const auto nanoseconds = times.nanoseconds(positions[i]);
    const bool fits = nanoseconds && *nanoseconds / unit_ > INT64_MIN &&
                      *nanoseconds / unit_ <= INT64_MAX && moment_of(*nanoseconds);
    times_.push_back(fits ? static_cast<std::int64_t>(*nanoseconds / unit_) : INT64_MIN);
  }
}

std::string TimeSteps::label(std::int64_t i) const {
  if (is_missing(i)) return "NaT";
  if (!calendar_) {
    std::int64_t nanoseconds = 0;
    return __builtin_mul_overflow(at(i), unit_, &nanoseconds)
               ? std::to_string(at(i))
               : duration_text({.nanoseconds = nanoseconds});
  }
  return format_moment(kind_, static_cast<__int128>(at(i)) * unit_);
}

TimeSteps::Candidates TimeSteps::months_after(std::int64_t time, std::int64_t months) const {
  const std::int64_t day_units = kDaySeconds * (kNanosecondsPerSecond / unit_);
  struct Month {
    std::int64_t days, length;  // first day since 1970, number of days
  };
  const auto month_of = [this](std::int64_t index) {  // since January of year 0
    const auto first = [&](std::int64_t number) {
      const std::int64_t year = floor_divide<std::int64_t>(number, 12);
      return days_from_date(kind_, {year, static_cast<int>(number - year * 12) + 1, 1});
    };
    return Month{first(index), first(index + 1) - first(index)};
  };
  // For times near the least number, the beginning of the day is not representable.
  const std::int64_t days = floor_divide(time, day_units);
  const std::int64_t of_day = (time % day_units + day_units) % day_units;
  const Date date = date_from_days(kind_, days);
  const int day = date.day;
  const std::int64_t index = date.year * 12 + date.month - 1;
  const Month from = month_of(index), to = month_of(index + months);
  Candidates result;
  const auto add = [&](std::int64_t days_later, std::int64_t more) {
    std::int64_t found;
    if (!__builtin_mul_overflow(to.days + days_later, day_units, &found) &&
        !__builtin_add_overflow(found, more, &found))
      result.times[result.count++] = found;
  };
  add(std::min<std::int64_t>(day, to.length) - 1, of_day);
  if (!monthly_) return result;
  if (day == from.length) add(to.length - 1, of_day);
  if (2 * ((day - 1) * day_units + of_day) == from.length * day_units)
    add(0, to.length * day_units / 2);
  return result;
}

bool TimeSteps::follows(std::int64_t i, std::int64_t j, const Duration& step) const {
  if (is_missing(i) || is_missing(j)) return false;
  if (step.months == 0) {
    std::int64_t distance;
    return step.nanoseconds % unit_ == 0 && !__builtin_sub_overflow(at(j), at(i), &distance) &&
           distance == step.nanoseconds / unit_;
  }
  if (!calendar_) return false;
  const Candidates found = months_after(at(i), step.months);
  return std::find(found.times.begin(), found.times.begin() + found.count, at(j)) !=
         found.times.begin() + found.count;
}

bool TimeSteps::is_multiple_from(std::int64_t i, __int128 origin, const Duration& step) const {
  if (is_missing(i)) return false;
  if (step.months == 0) return (nanoseconds(i) - origin) % step.nanoseconds == 0;
  const __int128 from = origin / unit_;
  if (!calendar_ || origin % unit_ != 0 || from <= INT64_MIN || from > INT64_MAX) return false;
  const std::int64_t months = month(at(i)) - month(static_cast<std::int64_t>(from));
  if (months % step.months != 0) return false;
  const Candidates found = months_after(static_cast<std::int64_t>(from), months);
  return std::find(found.times.begin(), found.times.begin() + found.count, at(i)) !=
         found.times.begin() + found.count;
}

std::optional<Duration> TimeSteps::step_between(std::int64_t i, std::int64_t j) const {
  std::int64_t distance;
  if (is_missing(i) || is_missing(j) || __builtin_sub_overflow(at(j), at(i), &distance) ||
      __builtin_mul_overflow(distance, unit_, &distance) || distance == 0 || distance == INT64_MIN)
    return std::nullopt;
  return Duration{.nanoseconds = distance};
}

std::optional<std::int64_t> TimeSteps::first_irregular(const Duration& step) const {
  for (std::int64_t i = 1; i < size(); ++i)
    if (!follows(i - 1, i, step)) return i;
  return std::nullopt;
}

std::optional<Duration> TimeSteps::calendar_step() const {
  if (!calendar_ || size() < 2) return std::nullopt;
  // The most frequent distance in months, by majority vote.
  const auto months_between = [&](std::int64_t i) -> std::int64_t {
    if (is_missing(i - 1) || is_missing(i)) return 0;
    const std::int64_t months = month(at(i)) - month(at(i - 1));
    return follows(i - 1, i, {.months = months}) ? months : 0;
  };
  std::int64_t candidate = 0, votes = 0;
  for (std::int64_t i = 1; i < size(); ++i) {
    const std::int64_t months = months_between(i);
    if (votes == 0) candidate = months;
    votes += months == candidate ? 1 : -1;
  }
  if (candidate == 0) return std::nullopt;
  std::int64_t count = 0;
  for (std::int64_t i = 1; i < size(); ++i) count += follows(i - 1, i, {.months = candidate});
  if (2 * count <= size() - 1) return std::nullopt;
  return Duration{.months = candidate};
}

std::optional<Duration> TimeSteps::common_step() const {
  std::optional<Duration> candidate;
  std::int64_t votes = 0;
  for (std::int64_t i = 1; i < size(); ++i) {
    const std::optional<Duration> step = step_between(i - 1, i);
    if (votes == 0) candidate = step;
    votes += step == candidate ? 1 : -1;
  }
  std::int64_t count = 0;
  if (candidate)
    for (std::int64_t i = 1; i < size(); ++i) count += follows(i - 1, i, *candidate);
  // A step of at least 28 days may be a month: where many months have equally many days, their
  // steps look like a fixed length.
  constexpr std::int64_t kShortestMonth = 28 * kDaySeconds * kNanosecondsPerSecond;
  const bool fixed = candidate && 2 * count > size() - 1;
  if (!fixed || candidate->nanoseconds >= kShortestMonth ||
      candidate->nanoseconds <= -kShortestMonth)
    if (const auto months = calendar_step();
        months && (!fixed || !first_irregular(*months) || first_irregular(*candidate)))
      return months;
  return fixed ? candidate : std::nullopt;
}

std::optional<Duration> TimeSteps::regular_step() const {
  const std::optional<Duration> step = common_step();
  return step && !first_irregular(*step) ? step : std::nullopt;
}

std::optional<std::int64_t> TimeSteps::first_unordered() const {
  for (std::int64_t i = 0; i < size(); ++i)
    if (is_missing(i) || (i > 0 && (descending_ ? at(i) >= at(i - 1) : at(i) <= at(i - 1))))
      return i;
  return std::nullopt;
}

std::int64_t TimeSteps::search(std::int64_t time) const {
  const auto found = descending_
                         ? std::lower_bound(times_.begin(), times_.end(), time, std::greater<>())
                         : std::lower_bound(times_.begin(), times_.end(), time);
  return found != times_.end() && *found == time ? found - times_.begin() : -1;
}

std::int64_t TimeSteps::find(std::int64_t i, const Duration& duration, std::int64_t hint) const {
  const auto position_of = [&](std::int64_t time) {
    return hint >= 0 && hint < size() && at(hint) == time ? hint : search(time);
  };
  if (duration.months == 0) {
    std::int64_t time;
    return duration.nanoseconds % unit_ == 0 &&
                   !__builtin_add_overflow(at(i), duration.nanoseconds / unit_, &time)
               ? position_of(time)
               : -1;
  }
  if (!calendar_) return -1;
  const Candidates found = months_after(at(i), duration.months);
  for (std::size_t k = 0; k < found.count; ++k)
    if (const std::int64_t position = position_of(found.times[k]); position >= 0) return position;
  return -1;
}

std::shared_ptr<const TimeSteps> TimeStepsByDim::along(const std::string& dim,
                                                       const std::string& path) {
  std::shared_ptr<const TimeSteps>& axis = axes_[dim];
  if (axis == nullptr)
    axis = std::make_shared<const TimeSteps>(dataset_, dim, selected_.at(dim), path);
  return axis;
}

std::int64_t TimeSteps::month(std::int64_t time) const {
  const Date date =
      date_from_days(kind_, floor_divide(time, kDaySeconds * (kNanosecondsPerSecond / unit_)));
  return date.year * 12 + date.month - 1;
}

}  // namespace batchfs

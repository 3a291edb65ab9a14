#include "engine/view/made/time_labels.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

constexpr std::int64_t kDayLength = INT64_C(86'400'000'000'000);  // nanoseconds
constexpr std::int64_t kNoTime = INT64_MIN;

/// Times, or numbers that stand for times of a calendar that datetime64 has not.
bool has_labels_of_time(const Dataset& dataset, const std::string& dim) {
  const Variable* index = dataset.index_of(dim);
  if (index == nullptr || !index->is_readable()) return false;
  return index->cf.time == CfDecoding::Time::datetime || index->cf.decoded.kind == Kind::datetime ||
         index->cf.counts_from.has_value();
}

}  // namespace

Instant instant_of(const Moment& moment) {
  if (moment.days == kNoTime) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return {kNan, kNan, 1};
  }
  return {static_cast<double>(moment.days) * 86400 + static_cast<double>(moment.of_day) / 1e9,
          static_cast<double>(moment.of_day) / static_cast<double>(kDayLength),
          day_of_year(Calendar::proleptic_gregorian, moment.days)};
}

TimeLabels::TimeLabels(const Dataset& dataset, const std::string& dim, const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", path, why));
  };
  if (dataset.index_of(dim) == nullptr)
    throw fail(fmt::format("the dimension '{}' has no coordinate of times", dim));
  const Dataset::Index& index = dataset.index(dim);
  if (index.values.type.kind != Kind::datetime)
    throw fail(index.cf.counts_from
                   ? fmt::format("the times of '{}' cannot be datetime64 ({}), which channels of "
                                 "time need",
                                 dim, index.cf.note)
                   : fmt::format("the labels of '{}' are {}, not times: it needs units as \"hours "
                                 "since 1970-01-01\"",
                                 dim, index.values.type.name()));
  const std::int64_t count = index.values.shape[0];
  moments_.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto time = time_nanoseconds(label_count(index.values, i), index.values.type);
    moments_.push_back(time ? moment_of(*time).value_or(Moment{kNoTime, 0}) : Moment{kNoTime, 0});
  }
}

Instant TimeLabels::at(std::int64_t position, std::int64_t later) const {
  Moment moment = moments_[static_cast<std::size_t>(position)];
  if (moment.days != kNoTime && later != 0) {
    const std::int64_t of_day = moment.of_day + later % kDayLength;
    moment.days += later / kDayLength;
    moment.of_day = of_day % kDayLength;
    if (of_day >= kDayLength) ++moment.days;
    if (moment.of_day < 0) moment.of_day += kDayLength, --moment.days;
  }
  return instant_of(moment);
}

std::string time_dimension(const Dataset& dataset, const std::vector<std::string>& preferred,
                           const std::string& named, const std::string& path) {
  if (!named.empty()) {
    try {
      dataset.dim_size(named);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}.time: {}", path, error.why()));
    }
    return named;
  }
  std::vector<std::string> found;
  for (const std::string& dim : preferred)
    if (has_labels_of_time(dataset, dim)) found.push_back(dim);
  if (found.empty())
    for (const auto& [dim, size] : dataset.dims())
      if (dataset.original_dim(dim) == dim && has_labels_of_time(dataset, dim))
        found.push_back(dim);
  if (found.size() == 1) return found.front();
  throw Error(ErrorCode::invalid_argument,
              found.empty()
                  ? fmt::format("{}: no dimension has a coordinate of times (datetime64): it needs "
                                "units as \"hours since 1970-01-01\"",
                                path)
                  : fmt::format("{}: there are several dimensions of times: {}; name one: "
                                "\"time\": \"{}\"",
                                path, join(found, ", "), found.front()));
}

}  // namespace batchfs

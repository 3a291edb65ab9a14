#include "engine/view/made/time_labels.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/dataset/labels.h"
#include "engine/dataset/read_variable.h"

namespace batchfs {

namespace {

constexpr std::int64_t kDayLength = INT64_C(86'400'000'000'000);  // nanoseconds
constexpr std::int64_t kNoTime = INT64_MIN;
constexpr std::uint64_t kShareOfTimes = 4;  // of the memory limit, for times of a variable

/// Precondition: `moment` is a time.
Moment later_by(Moment moment, std::int64_t nanoseconds) {
  const std::int64_t of_day = moment.of_day + nanoseconds % kDayLength;
  moment.days += nanoseconds / kDayLength;
  moment.of_day = of_day % kDayLength;
  if (of_day >= kDayLength) ++moment.days;
  if (moment.of_day < 0) moment.of_day += kDayLength, --moment.days;
  return moment;
}

/// `name`: of the array that holds them, for messages.
std::vector<Moment> moments_of(const Dataset::Index& index, const std::string& name,
                               const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: {}", path, why));
  };
  if (index.values.type.kind != Kind::datetime)
    throw fail(index.cf.counts_from
                   ? fmt::format("the times of '{}' cannot be datetime64 ({}), which channels of "
                                 "time need",
                                 name, index.cf.note)
                   : fmt::format("the labels of '{}' are {}, not times: it needs units as \"hours "
                                 "since 1970-01-01\"",
                                 name, index.values.type.name()));
  std::vector<Moment> moments;
  const std::int64_t count = element_count(index.values.shape);
  moments.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto time = time_nanoseconds(label_count(index.values, i), index.values.type);
    moments.push_back(time ? moment_of(*time).value_or(Moment{kNoTime, 0}) : Moment{kNoTime, 0});
  }
  return moments;
}

/// The labels of a dimension of lead times [ns]; kNoTime for NaT and values beyond int64.
std::vector<std::int64_t> leads_along(const Dataset& dataset, const std::string& dim) {
  const NdArray& labels = dataset.index_values(dim);
  const auto unit = static_cast<LabelNumber>(*lead_unit(dataset, dim));
  std::vector<std::int64_t> leads;
  for (std::int64_t i = 0; i < labels.shape[0]; ++i) {
    const LabelNumber lead = std::round(label_number(labels, i) * unit);
    leads.push_back(std::fabs(lead) < 0x1p63L ? static_cast<std::int64_t>(lead) : kNoTime);
  }
  return leads;
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

TimeLabels::TimeLabels(const Dataset& dataset, const ValueTimes& times, const std::string& path)
    : shape_(times.dims.size()) {
  for (std::size_t d = 0; d < times.dims.size(); ++d) shape_[d] = dataset.dim_size(times.dims[d]);
  if (!times.variable.empty()) {
    const Variable& variable = dataset.variable(times.variable);
    if (static_cast<std::uint64_t>(element_count(shape_)) >
        dataset.memory_limit() / kShareOfTimes / sizeof(Moment))
      throw Error(ErrorCode::no_memory,
                  fmt::format("{}: the {} times of '{}' take more than a quarter of --memory; give "
                              "more",
                              path, element_count(shape_), variable.name));
    moments_ = moments_of(read_index(variable), variable.name, path);
    return;
  }
  const std::string& dim = times.dims.front();
  if (dataset.index_of(dim) == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the dimension '{}' has no coordinate of times", path, dim));
  moments_ = moments_of(dataset.index(dim), dim, path);
  if (times.dims.size() > 1) leads_ = leads_along(dataset, times.dims[1]);
}

std::int64_t TimeLabels::number(const Dims& position) const {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) number = number * shape_[d] + position[d];
  return number;
}

Instant TimeLabels::at(std::int64_t number, std::int64_t later) const {
  const auto leads = static_cast<std::int64_t>(leads_.size());
  Moment moment = moments_[static_cast<std::size_t>(leads > 0 ? number / leads : number)];
  const std::int64_t lead = leads > 0 ? leads_[static_cast<std::size_t>(number % leads)] : 0;
  if (moment.days == kNoTime || lead == kNoTime) return instant_of({kNoTime, 0});
  if (lead != 0) moment = later_by(moment, lead);
  if (later != 0) moment = later_by(moment, later);
  return instant_of(moment);
}

}  // namespace batchfs

#include "engine/write/prediction/described_axes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/labels.h"
#include "engine/view/axes.h"
#include "engine/view/describe/resolved.h"
#include "engine/view/samples/duration.h"
#include "engine/write/prediction/epoch_samples.h"

namespace batchfs {

namespace {

Error coarse(const std::string& tensor, const std::string& dim) {
  return Error(ErrorCode::not_supported,
               fmt::format("the tensor '{}' has other positions along '{}' than what the view "
                           "selects, by \"coarsen\" for instance: predictions for it have no place "
                           "in an array; name another with tensor=",
                           tensor, dim));
}

AxisLabels decoded(const ViewCoordinate& coordinate) {
  const auto bytes = std::as_bytes(std::span(
      coordinate.values->data.data(),
      static_cast<std::size_t>(coordinate.values->shape[0]) * coordinate.values->type.itemsize));
  return {coordinate.values->type, {bytes.begin(), bytes.end()}, coordinate.attributes};
}

AxisLabels counts(const DataType& type, const std::vector<std::int64_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {type, {bytes.begin(), bytes.end()}};
}

std::shared_ptr<const CoordinateLabels> stored(const AxisLabels& labels) {
  return std::make_shared<const CoordinateLabels>(labels.stored());
}

}  // namespace

AxisDescriber::AxisDescriber(const View& view, const PredictionSamples& samples)
    : view_(view), samples_(samples), resolved_(resolved_view(view)) {}

int AxisDescriber::window_of(const std::string& dim) const {
  return window_number(view_.axes().windows, dim);
}

const ViewCoordinate* AxisDescriber::coordinate(const std::string& dim) const {
  for (const ViewCoordinate& each : view_.coordinates())
    if (each.name == dim) return &each;
  return nullptr;
}

std::shared_ptr<const CoordinateLabels> AxisDescriber::labels(const std::string& dim) const {
  const ViewCoordinate* found = coordinate(dim);
  return found == nullptr ? nullptr : stored(decoded(*found));
}

DescribedAxis AxisDescriber::whole(const std::string& dim, std::int64_t length,
                                   const std::string& tensor) const {
  const ViewCoordinate* found = coordinate(dim);
  if (found != nullptr && found->values->shape[0] != length) throw coarse(tensor, dim);
  DescribedAxis result{.axis = {.name = dim, .length = length, .labels = labels(dim)}, .dim = dim};
  result.steps.resize(static_cast<std::size_t>(length));
  std::iota(result.steps.begin(), result.steps.end(), std::int64_t{0});
  return result;
}

DescribedAxis AxisDescriber::windowed(const std::string& dim, const Json& offsets,
                                      std::int64_t length, const std::string& tensor) const {
  const int w = window_of(dim);
  const std::int64_t size = view_.axes().windows[static_cast<std::size_t>(w)].size;
  bool partial = false;
  if (const auto window = resolved_.find("window"); window != resolved_.end())
    if (const auto keys = window->find(dim); keys != window->end() && keys->is_object())
      partial = keys->value("edge", "") == "partial";
  if (length != size * static_cast<std::int64_t>(offsets.size()) && !partial)
    throw coarse(tensor, dim);
  DescribedAxis result{.axis = {.name = dim,
                                .length = view_.axes().along(dim).size(),
                                .window = w,
                                .wraps = view_.axes().windows[static_cast<std::size_t>(w)].wrap,
                                .partial = partial,
                                .labels = labels(dim)},
                       .dim = dim,
                       .window = w};
  auto& blocks = result.axis.blocks;
  for (const Json& offset : offsets) {
    const std::int64_t first = positions_of(offset, dim);
    for (std::int64_t i = 0; i < size; ++i) result.steps.push_back(first + i);
    if (!blocks.empty() && blocks.back().first + blocks.back().second == first)
      blocks.back().second += size;
    else
      blocks.emplace_back(first, size);
  }
  return result;
}

DescribedAxis AxisDescriber::by_start(const std::string& name, const std::string& dim) const {
  const int w = window_of(dim);
  const std::vector<std::int64_t> starts = starts_along(samples_, w);
  const ViewCoordinate* found = coordinate(dim);
  return {
      .axis = {.name = name,
               .length = static_cast<std::int64_t>(starts.size()),
               .window = w,
               .by_start = true,
               .labels = stored(found == nullptr ? counts(make_type(Kind::signed_int, 8), starts)
                                                 : decoded(*found).at(starts))},
      .dim = dim,
      .order = -1,
      .window = w,
      .steps = {0}};
}

DescribedAxis AxisDescriber::lead(const DescribedAxis& windowed) const {
  AxisLabels labels = counts(make_type(Kind::signed_int, 8), windowed.steps);
  labels.attributes["long_name"] =
      fmt::format("steps along {} from the start of the sample's window", windowed.dim);
  if (const auto gap = spacing(windowed.dim)) {
    std::vector<std::int64_t> lengths;
    for (const std::int64_t step : windowed.steps) {
      std::int64_t length = 0;
      if (__builtin_mul_overflow(step, *gap, &length))
        throw Error(ErrorCode::not_supported,
                    fmt::format("{} steps along '{}' are longer than 292 years; pass "
                                "time=\"valid\"",
                                step, windowed.dim));
      lengths.push_back(length);
    }
    DataType type = make_type(Kind::timedelta, 8);
    type.unit = "ns";
    labels = counts(type, lengths);
    labels.attributes["long_name"] = "time since the start of the sample's window";
  }
  DescribedAxis result = windowed;
  result.axis = {.name = "lead_" + windowed.axis.name,
                 .length = static_cast<std::int64_t>(windowed.steps.size()),
                 .labels = stored(labels)};
  return result;
}

std::string AxisDescriber::time_dim() const {
  for (const WindowDim& window : view_.axes().windows)
    if (const auto* found = coordinate(window.name);
        found != nullptr && found->values->type.kind == Kind::datetime)
      return window.name;
  if (window_of("time") >= 0) return "time";
  throw Error(ErrorCode::invalid_argument,
              "time=\"lead\" needs a dimension of times in the view's \"window\"");
}

/// Nanoseconds between neighbouring labels, where they are the same everywhere.
std::optional<std::int64_t> AxisDescriber::spacing(const std::string& dim) const {
  const ViewCoordinate* found = coordinate(dim);
  if (found == nullptr || found->values->type.kind != Kind::datetime || found->values->shape[0] < 2)
    return std::nullopt;
  std::optional<__int128> before, gap;
  for (std::int64_t i = 0; i < found->values->shape[0]; ++i) {
    const auto time = time_nanoseconds(label_count(*found->values, i), found->values->type);
    if (!time) return std::nullopt;
    if (before && gap && *time - *before != *gap) return std::nullopt;
    if (before) gap = *time - *before;
    before = time;
  }
  if (*gap == 0 || *gap > INT64_MAX || *gap < INT64_MIN) return std::nullopt;
  return static_cast<std::int64_t>(*gap);
}

std::int64_t AxisDescriber::positions_of(const Json& offset, const std::string& dim) const {
  if (!offset.is_string()) return offset.get<std::int64_t>();
  const std::string text = offset.get<std::string>();
  const auto duration = parse_duration(text);
  const auto gap = spacing(dim);
  if (!duration || duration->months != 0 || !gap)
    throw Error(ErrorCode::not_supported,
                fmt::format("the offset '{}' along '{}' is not the same number of positions "
                            "everywhere: write predictions of views whose times have one spacing, "
                            "or offsets in positions",
                            text, dim));
  if (duration->nanoseconds % *gap != 0)
    throw Error(
        ErrorCode::not_supported,
        fmt::format("the offset '{}' is not a whole number of positions of '{}'", text, dim));
  return duration->nanoseconds / *gap;
}

}  // namespace batchfs

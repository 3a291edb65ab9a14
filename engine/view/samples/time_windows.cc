#include "engine/view/samples/time_windows.h"

#include <cstdlib>

#include <fmt/format.h>

#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

Duration step_of(const std::string& path, const std::string& dim, const std::string& text,
                 const SampleSpec& samples, TimeStepsByDim& axes) {
  const TimeSteps& times = *axes.along(dim, path);
  if (const SampleSpec::Spacing* spacing = samples.spacing_along(dim)) return spacing->step;
  if (const auto step = times.regular_step()) return *step;
  const auto fail = [&](const std::string& why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' {}", path, text, why));
  };
  if (times.size() < 2)
    throw fail(fmt::format("needs a step, and '{}' has fewer than two labels", dim));
  const auto common = times.common_step();
  const std::int64_t at = common ? times.first_irregular(*common).value_or(1)
                                 : std::min<std::int64_t>(2, times.size() - 1);
  throw fail(fmt::format(
      "needs labels that are one step apart, and after {} '{}' continues with {}; give the step: "
      "\"samples\": {{\"spacing\": {{\"{}\": \"{}\"}}}}",
      times.label(at - 1), dim, times.label(at), dim, common ? duration_text(*common) : "6h"));
}

std::int64_t positions_of(const Duration& duration, const std::string& path, const std::string& dim,
                          const SampleSpec& samples, TimeStepsByDim& axes) {
  const std::string text = duration_text(duration);
  const Duration step = step_of(path, dim, text, samples, axes);
  const bool same_kind = (step.months != 0) == (duration.months != 0);
  const std::int64_t whole = duration.months != 0 ? duration.months : duration.nanoseconds;
  const std::int64_t part = step.months != 0 ? step.months : step.nanoseconds;
  if (!same_kind || whole % part != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is not a multiple of {}, the step of '{}'", path, text,
                            duration_text(step), dim));
  return std::abs(whole / part);  // the step of labels that are stored downwards is negative
}

}  // namespace

void resolve_durations(WindowSpec& window, const SampleSpec& samples, TimeStepsByDim& times) {
  if (window.size_duration)
    window.size = positions_of(*window.size_duration, window.size_path, window.dim, samples, times);
  if (window.stride_duration)
    window.stride =
        positions_of(*window.stride_duration, window.stride_path, window.dim, samples, times);
  else if (!window.has_stride)
    window.stride = window.every ? 1 : window.size;
  // The same check as for numbers when they are read.
  const std::int64_t most = window.edge == WindowSpec::Edge::drop ? kMaxSteps : kMaxPadded;
  if (window.size_duration && window.size > most)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is {} positions; the most is {}", window.size_path,
                            duration_text(*window.size_duration), window.size, most));
  if (window.stride_duration && window.stride > kMaxSteps)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is {} positions; the most is {}", window.stride_path,
                            duration_text(*window.stride_duration), window.stride, kMaxSteps));
}

std::shared_ptr<const LabelOffsets> resolve_offsets(const OffsetList& offsets,
                                                    const std::vector<WindowDim>& windows,
                                                    TimeStepsByDim& times) {
  const int window = window_number(windows, offsets.dim);
  if (window < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: offsets need a dimension of \"window\"", offsets.path));
  if (windows[static_cast<std::size_t>(window)].wrap)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: lengths of time do not go with \"wrap\"", offsets.path));
  const auto axis = times.along(offsets.dim, offsets.path);
  if (const auto at = axis->first_unordered())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: lengths of time need labels in order, each once, and '{}' has {} "
                            "at position {}{}",
                            offsets.path, offsets.dim, axis->label(*at), *at,
                            *at == 0 ? "" : " after " + axis->label(*at - 1)));
  return std::make_shared<const LabelOffsets>(axis, offsets.durations);
}

std::vector<Reach> resolve_reaches(const std::vector<TensorDefinition>& tensors,
                                   const std::vector<OffsetList>& reserve,
                                   const std::vector<WindowDim>& windows, const Dataset& dataset,
                                   TimeStepsByDim& times, JoinedAxes& joined) {
  std::vector<Reach> reaches;
  for (const WindowDim& window : windows) {
    reaches.push_back(reach_of(window.name, window.size, tensors, reserve, dataset));
    for (const TensorDefinition& tensor : tensors)
      joined.add_lacking(tensor, window.name, window.wrap, dataset, reaches.back().lacking);
  }
  for (const OffsetList& list : reserve) {
    const int window = window_number(windows, list.dim);
    if (window < 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' is not a dimension of \"window\"", list.path, list.dim));
    if (!list.durations.empty())
      reaches[static_cast<std::size_t>(window)].labelled.push_back(
          {"reserve", list.path, resolve_offsets(list, windows, times)});
  }
  return reaches;
}

}  // namespace batchfs

#include "tools/show/variable_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/dataset.h"
#include "engine/scan/moments.h"
#include "fs/formats/element_number.h"

namespace batchfs {

namespace {

constexpr std::size_t kBins = 40;

/// Positions [start, start + length) of a dimension, on borders of chunks but for the array's end.
struct ChunkRange {
  std::int64_t first_chunk = 0, chunks = 0;
};

/// The middle `count` of the chunks along a dimension.
ChunkRange middle(std::int64_t all, std::int64_t count) { return {(all - count) / 2, count}; }

void check_readable(const Variable& variable) {
  if (!variable.is_readable())
    throw Error(ErrorCode::not_supported, variable.unsupported, variable.name);
  if (variable.array == nullptr || variable.cf.joined_characters > 0 ||
      !has_number(variable.cf.decoded))
    throw Error(ErrorCode::not_supported,
                variable.array == nullptr && variable.axis != nullptr
                    ? "it follows from the metadata"
                    : "its values are not numbers",
                variable.name);
}

/// The other positions of the dimensions that are not shown, at their end that `last` names.
Box moved(const Variable& variable, const SamplePlan& plan, bool last) {
  Box box = plan.box;
  for (std::size_t d = 0; d < box.shape.size(); ++d)
    if (plan.plane && d != plan.plane->lines && d != plan.plane->columns && plan.held != d)
      box.start[d] = last ? variable.shape[d] - 1 : 0;
  return box;
}

MapGrid grid_of(const SamplePlan& plan, const DataType& type) {
  MapGrid grid;
  grid.type = type;
  grid.maps = 1;
  const Dims strides = c_strides(plan.box.shape, 1);
  if (plan.plane) {
    grid.lines = plan.box.shape[plan.plane->lines];
    grid.columns = plan.box.shape[plan.plane->columns];
    grid.line_step = strides[plan.plane->lines];
    grid.column_step = strides[plan.plane->columns];
  }
  const std::int64_t longest = std::max(grid.lines, grid.columns);
  grid.average = std::max<std::int64_t>(1, (longest + kMaxPicture - 1) / kMaxPicture);
  return grid;
}

}  // namespace

SamplePlan plan_sample(const Variable& variable, const std::vector<DimFacts>& facts,
                       const SampleLimits& limits) {
  check_readable(variable);
  const Dims& shape = variable.shape;
  const ChunkGrid& grid = variable.array->grid();
  SamplePlan plan;
  plan.box = {Dims(shape.size()), Dims(shape.size(), 1)};
  if (element_count(shape) == 0) {
    plan.box.shape = shape;
    return plan;
  }
  const std::uint64_t chunk_bytes = std::max<std::uint64_t>(1, variable.array->chunk_bytes());
  if (chunk_bytes > limits.bytes)
    throw Error(ErrorCode::not_supported,
                fmt::format("one chunk takes {} in memory, past the limit of {}",
                            format_size(chunk_bytes), format_size(limits.bytes)),
                variable.name);
  const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(
      static_cast<std::uint64_t>(SampleLimits::kMaxChunks), limits.bytes / chunk_bytes));
  std::vector<std::size_t> shown;
  if (shape.size() >= 2) {
    plan.plane = plane_axes(facts, shape);
    shown = {plan.plane->lines, plan.plane->columns};
  } else if (shape.size() == 1) {
    shown = {0};
  }
  std::vector<std::int64_t> taken;
  for (const std::size_t d : shown) taken.push_back(grid.counts()[d]);
  const auto chunks = [&] {
    double product = 1;
    for (const std::int64_t count : taken) product *= static_cast<double>(count);
    return product;
  };
  while (chunks() > static_cast<double>(most)) {
    std::int64_t& longest = *std::max_element(taken.begin(), taken.end());
    longest = longest > 2 * most ? most : (longest + 1) / 2;
    plan.is_whole_plane = false;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) plan.box.start[d] = shape[d] / 2;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t d = shown[i];
    const ChunkRange range = middle(grid.counts()[d], taken[i]);
    const std::int64_t length = grid.chunk_shape()[d];
    plan.box.start[d] = range.first_chunk * length;
    plan.box.shape[d] =
        std::min(shape[d], (range.first_chunk + range.chunks) * length) - plan.box.start[d];
  }
  plan.chunks = static_cast<std::int64_t>(chunks());
  plan.bytes = static_cast<std::uint64_t>(plan.chunks) * chunk_bytes;
  return plan;
}

SampleSummary summarize(const DataType& type, std::span<const std::byte> values) {
  SampleSummary summary;
  const std::size_t count = type.itemsize == 0 ? 0 : values.size() / type.itemsize;
  summary.count = static_cast<std::int64_t>(count);
  const auto at = [&](std::size_t i) {
    return element_number(type, values.data() + i * type.itemsize);
  };
  double min = std::numeric_limits<double>::infinity(), max = -min;
  CompensatedSum sum;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = at(i);
    if (std::isnan(value)) {
      ++summary.missing;
    } else if (std::isinf(value)) {
      ++summary.infinite;
    } else {
      min = std::min(min, value);
      max = std::max(max, value);
      sum.add(value);
    }
  }
  if (summary.finite() == 0) return summary;
  summary.min = min;
  summary.max = max;
  summary.mean = sum.value() / static_cast<double>(summary.finite());
  summary.histogram.assign(kBins, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = at(i);
    if (!std::isfinite(value)) continue;
    // Halves: the range itself may be past the largest number.
    const double part = max > min ? (value / 2 - min / 2) / (max / 2 - min / 2) : 0;
    ++summary.histogram[std::min(kBins - 1, static_cast<std::size_t>(part * kBins))];
  }
  return summary;
}

VariableSample read_sample(Engine& engine, const Variable& variable, SamplePlan plan) {
  VariableSample sample;
  sample.type = variable.cf.decoded;
  const MapGrid grid = grid_of(plan, sample.type);
  const auto converter = std::make_shared<const Converter>(variable.cf, sample.type);
  const Dims strides = c_strides(plan.box.shape, sample.type.itemsize);
  Buffer values(static_cast<std::size_t>(plan.box.elements()) * sample.type.itemsize);
  std::vector<Box> places{plan.box};
  for (const bool last : {false, true})
    if (const Box box = moved(variable, plan, last);
        std::find(places.begin(), places.end(), box) == places.end())
      places.push_back(box);
  for (const Box& box : places) {
    if (!box.empty())
      engine.arrays().read_box(variable.array, box, converter, values.data(), strides);
    const SampleSummary summary = summarize(sample.type, values.span());
    if (&box != &places.front() && summary.finite() == 0) continue;
    sample.summary = summary;
    plan.box = box;
    if (plan.plane) sample.means = pixel_means(grid, 0, values.span());
    if (summary.finite() > 0) break;
  }
  sample.across = plan.plane ? grid.across() : 0;
  sample.down = plan.plane ? grid.down() : 0;
  sample.plan = std::move(plan);
  return sample;
}

}  // namespace batchfs

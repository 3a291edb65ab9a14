#include "engine/view/geometry.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "engine/view/axis_positions.h"

namespace batchfs {

int window_number(const std::vector<WindowDim>& windows, const std::string& dim) {
  for (std::size_t w = 0; w < windows.size(); ++w)
    if (windows[w].name == dim) return static_cast<int>(w);
  return -1;
}

Error PlanBuilder::too_long() const {
  return Error(ErrorCode::no_memory,
               fmt::format("a batch of {} samples takes so many small parts of chunks that their "
                           "list takes more than {} of memory; take smaller batches, or give more "
                           "with --memory",
                           samples_, format_size(limit_.bytes)));
}

void PlanBuilder::add_runs(const AxisPlacement& axis, const Row& row, std::int64_t chunk_length,
                           std::vector<Run>& runs) {
  runs.clear();
  visit_positions(axis, row, [&](std::int64_t index, std::int64_t count, std::int64_t offset) {
    while (count > 0) {
      const std::int64_t chunk = index / chunk_length, start = index % chunk_length;
      const std::int64_t here = std::min(count, chunk_length - start);
      if (!runs.empty() && runs.back().chunk == chunk &&
          runs.back().start + runs.back().length == start &&
          runs.back().offset + runs.back().length * axis.stride == offset)
        runs.back().length += here;
      else
        runs.push_back({chunk, start, here, offset});
      index += here;
      count -= here;
      offset += here * axis.stride;
    }
  });
}

namespace {

/// Calls `gap(first, count)` for positions of the tensor along an axis at which the array has
/// nothing.
template <class Gap>
void for_each_gap(const AxisPlacement& axis, const Row& row, Gap&& gap) {
  const std::int64_t length = axis.selected.size();
  std::int64_t begin = -1;  // of the gap that is being counted
  const auto visit = [&](std::int64_t place, bool is_gap) {
    if (is_gap && begin < 0) begin = place;
    if (is_gap || begin < 0) return;
    gap(begin, place - begin);
    begin = -1;
  };
  if (axis.window < 0) {
    for (std::int64_t i = 0; i < length; ++i) visit(i, axis.gaps()[i] == Positions::kNone);
    return visit(length, false);
  }
  std::int64_t place = 0;
  for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
    const std::int64_t first = axis.first(o, row.starts[static_cast<std::size_t>(axis.window)]);
    for (std::int64_t k = 0; k < axis.size; ++k, ++place) {
      std::int64_t position = first + k;
      if (axis.wrap) position = ((position % length) + length) % length;
      visit(place, position < length && axis.gaps()[position] == Positions::kNone);
    }
  }
  visit(place, false);
}

}  // namespace

void PlanBuilder::add_paddings(const VariablePlacement& placement, const Row& row) {
  if (!placement.pads) return;
  const std::size_t rank = placement.axes.size();
  const auto axis_at = [&](std::size_t d) -> const AxisPlacement& {
    return d < rank ? placement.axes[d] : placement.repeated[d - rank];
  };
  std::array<std::int64_t, kMaxDims> inside{};  // positions that are not padding
  for (std::size_t d = 0; d < rank + placement.repeated.size(); ++d)
    inside[d] = axis_at(d).extent();
  // Across the whole of the other dimensions: overlaps are padded twice.
  const auto add = [&](std::size_t d, std::int64_t first, std::int64_t count) {
    inside[d] -= count;
    Padding padding{placement.tensor, row.offsets[placement.tensor] + placement.base, {}, {}};
    for (std::size_t k = 0; k < rank + placement.repeated.size(); ++k) {
      padding.shape.push_back(axis_at(k).extent());
      padding.strides.push_back(axis_at(k).stride);
    }
    padding.shape[d] = count;
    padding.offset += first * axis_at(d).stride;
    paddings_.push_back(padding);
    check(0);
  };
  for (std::size_t d = 0; d < rank; ++d)
    if (axis_at(d).gaps().has_gaps())
      for_each_gap(axis_at(d), row,
                   [&](std::int64_t first, std::int64_t count) { add(d, first, count); });
  for (std::size_t d = 0; d < rank + placement.repeated.size(); ++d) {
    const AxisPlacement& axis = axis_at(d);
    if (axis.window < 0 || axis.wrap) continue;
    for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
      const std::int64_t first = axis.first(o, row.starts[static_cast<std::size_t>(axis.window)]);
      const std::int64_t there =
          std::clamp<std::int64_t>(axis.selected.size() - first, 0, axis.size);
      if (there < axis.size)
        add(d, static_cast<std::int64_t>(o) * axis.size + there, axis.size - there);
    }
  }
  std::int64_t all = 1, filled = 1;
  for (std::size_t d = 0; d < rank + placement.repeated.size(); ++d) {
    all *= axis_at(d).extent();
    filled *= inside[d];
  }
  if (padded_.size() <= placement.tensor) padded_.resize(placement.tensor + 1);
  padded_[placement.tensor] += all - filled;
}

bool PlanBuilder::merge(Part& part, const Part& next) {
  if (part.tensor != next.tensor || part.repeat != next.repeat) return false;
  int joined = -1;
  for (std::size_t d = 0; d < part.source.shape.size(); ++d) {
    if (part.source.start[d] == next.source.start[d] &&
        part.source.shape[d] == next.source.shape[d])
      continue;
    if (joined >= 0 || part.source.start[d] + part.source.shape[d] != next.source.start[d])
      return false;
    joined = static_cast<int>(d);
  }
  if (joined < 0) return false;  // the same elements again
  const auto d = static_cast<std::size_t>(joined);
  for (std::size_t k = 0; k < part.strides.size(); ++k)
    if (k != d && part.strides[k] != next.strides[k] && part.source.shape[k] != 1) return false;
  const std::int64_t distance = next.offset - part.offset;
  if (part.source.shape[d] == 1) {
    // The stride of a single element is free: it becomes the distance to the next one.
    if (next.source.shape[d] > 1 && next.strides[d] != distance) return false;
    part.strides[d] = distance;
  } else if (distance != part.source.shape[d] * part.strides[d] ||
             (next.source.shape[d] > 1 && next.strides[d] != part.strides[d])) {
    return false;
  }
  part.source.shape[d] += next.source.shape[d];
  return true;
}

void VariablePlacement::repeat_along(AxisPlacement axis) {
  if (axes.size() + repeated.size() >= kMaxDims)
    throw Error(ErrorCode::not_supported, "too many dimensions");
  repeated.push_back(std::move(axis));
}

std::vector<std::pair<std::int64_t, std::int32_t>> PlanBuilder::repeats_of(
    const VariablePlacement& placement, const Row& row) {
  if (placement.repeated.empty()) return {{0, -1}};
  std::vector<std::pair<std::int64_t, Repeat>> places{{0, {}}};
  for (const AxisPlacement& axis : placement.repeated) {
    // Positions of the tensor that follow one another: all, but for those that are padding.
    std::vector<std::pair<std::int64_t, std::int64_t>> runs;  // first, and how many
    if (axis.window < 0 || axis.wrap) {
      runs.emplace_back(0, axis.extent());
    } else {
      const std::int64_t start = row.starts[static_cast<std::size_t>(axis.window)];
      for (std::size_t o = 0; o < axis.offsets.size(); ++o) {
        const std::int64_t inside =
            std::clamp<std::int64_t>(axis.selected.size() - axis.first(o, start), 0, axis.size);
        const std::int64_t first = static_cast<std::int64_t>(o) * axis.size;
        if (!runs.empty() && runs.back().first + runs.back().second == first)
          runs.back().second += inside;
        else if (inside > 0)
          runs.emplace_back(first, inside);
      }
    }
    std::vector<std::pair<std::int64_t, Repeat>> longer;
    for (const auto& [offset, repeat] : places)
      for (const auto& [first, count] : runs) {
        longer.emplace_back(offset + first * axis.stride, repeat);
        longer.back().second.counts.push_back(count);
        longer.back().second.strides.push_back(axis.stride);
      }
    places = std::move(longer);
  }
  std::vector<std::pair<std::int64_t, std::int32_t>> result;
  for (const auto& [offset, repeat] : places) {
    const auto known = std::find(repeats_.begin(), repeats_.end(), repeat);
    result.emplace_back(offset, static_cast<std::int32_t>(known - repeats_.begin()));
    if (known == repeats_.end()) repeats_.push_back(repeat);
  }
  return result;
}

void PlanBuilder::add(const VariablePlacement& placement, const Row& row) {
  const ChunkGrid* grid = placement.made ? nullptr : &variables_[placement.variable]->array->grid();
  const std::size_t rank = placement.axes.size();
  add_paddings(placement, row);
  if (runs_.size() < rank) runs_.resize(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    add_runs(placement.axes[d], row, grid != nullptr ? grid->chunk_shape()[d] : INT64_MAX,
             runs_[d]);
    if (runs_[d].empty()) return;
  }
  const std::int64_t base = row.offsets[placement.tensor] + placement.base;
  for (const auto& [offset, repeat] : repeats_of(placement, row))
    add_parts(placement, base + offset, repeat);
}

void PlanBuilder::add_parts(const VariablePlacement& placement, std::int64_t base,
                            std::int32_t repeat) {
  const ChunkGrid* grid = placement.made ? nullptr : &variables_[placement.variable]->array->grid();
  const std::size_t rank = placement.axes.size();
  Dims at(rank);
  for (;;) {
    Part part;
    Box source;
    Dims strides;
    part.tensor = placement.tensor;
    part.repeat = repeat;
    part.offset = base;
    std::int64_t chunk = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const Run& run = runs_[d][static_cast<std::size_t>(at[d])];
      if (grid != nullptr) chunk = chunk * grid->counts()[d] + run.chunk;
      source.start.push_back(run.start);
      source.shape.push_back(run.length);
      strides.push_back(placement.axes[d].stride);
      part.offset += run.offset;
    }
    part.source = source;
    part.strides = strides;
    if (placement.made)
      add_made(placement, part);
    else
      add_to_group(placement.variable, chunk, part);
    std::size_t d = rank;
    while (d > 0 && at[d - 1] + 1 == static_cast<std::int64_t>(runs_[d - 1].size())) at[--d] = 0;
    if (d == 0) return;
    ++at[d - 1];
  }
}

void PlanBuilder::add_to_group(std::uint32_t variable, std::int64_t chunk, const Part& part) {
  std::vector<std::uint32_t>& candidates =
      by_chunk_[static_cast<std::uint64_t>(chunk) * UINT64_C(0x9e3779b97f4a7c15) + variable];
  Group* group = nullptr;
  for (std::uint32_t g : candidates)
    if (groups_[g].variable == variable && groups_[g].chunk == chunk) group = &groups_[g];
  if (group == nullptr) {
    candidates.push_back(static_cast<std::uint32_t>(groups_.size()));
    group = &groups_.emplace_back(Group{variable, chunk, {}});
  }
  // Several tensors take turns in a group: the last part of the same tensor is the one to extend.
  for (std::size_t i = group->parts.size(); i-- > 0 && group->parts.size() - i <= 4;)
    if (group->parts[i].tensor == part.tensor) {
      if (merge(group->parts[i], part)) return;
      break;
    }
  group->parts.push_back(part);
  ++parts_;
  check(0);
}

void PlanBuilder::add_made(const VariablePlacement& placement, const Part& part) {
  if (!made_.empty() && made_.back().channel == placement.variable &&
      merge(made_.back().part, part))
    return;
  made_.push_back({placement.variable, part});
  check(0);
}

void PlanBuilder::finish(BatchPlan& plan) {
  plan.paddings = std::move(paddings_);
  plan.padded = std::move(padded_);
  plan.repeats = std::move(repeats_);
  plan.made = std::move(made_);
  plan.chunks.reserve(groups_.size());
  plan.parts.reserve(parts_);
  for (Group& group : groups_) {
    plan.chunks.push_back({group.variable, group.chunk,
                           static_cast<std::uint32_t>(plan.parts.size()),
                           static_cast<std::uint32_t>(group.parts.size())});
    // One after the other, so that the parts are not in memory twice.
    for (Part& part : std::exchange(group.parts, {})) plan.parts.push_back(std::move(part));
  }
}

}  // namespace batchfs

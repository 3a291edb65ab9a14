#include "engine/view/plan/chunk_walk.h"

#include <algorithm>

#include "engine/view/axis_positions.h"

namespace batchfs {

std::optional<ChunkWalk::Chunk> ChunkWalk::next() {
  while (current_ == nullptr)
    if (!next_placement()) return std::nullopt;
  const ChunkGrid& grid = (*variables_)[current_->variable]->array->grid();
  Chunk result{first_variable_ + current_->variable, 0, {}};
  for (std::size_t d = 0; d < at_.size(); ++d) {
    const Run& run = runs_[d][static_cast<std::size_t>(at_[d])];
    result.chunk = result.chunk * grid.counts()[d] + run.chunk;
    result.box.start.push_back(run.start);
    result.box.shape.push_back(run.length);
  }
  std::size_t d = at_.size();
  while (d > 0 && ++at_[d - 1] == static_cast<std::int64_t>(runs_[d - 1].size())) at_[--d] = 0;
  if (d == 0) current_ = nullptr;
  return result;
}

/// Goes to the next placement of a row that needs chunks. False when there are no more rows.
bool ChunkWalk::next_placement() {
  if (placement_ == placements_.all.size()) {
    placement_ = 0;
    ++row_;
  }
  if (row_ >= rows_.size()) {
    rows_ = next_rows_();
    row_ = 0;
    if (rows_.empty()) return false;
  }
  if (placements_.all.empty()) return true;
  const VariablePlacement& placement = *placements_.all[placement_++];
  if (!placement.made && find_runs(placement, rows_[row_])) current_ = &placement;
  return true;
}

bool ChunkWalk::find_runs(const VariablePlacement& placement, const Row& row) {
  const ChunkGrid& grid = (*variables_)[placement.variable]->array->grid();
  const std::size_t rank = placement.axes.size();
  if (!has_places(placement, row)) return false;
  if (runs_.size() < rank) runs_.resize(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<Run>& runs = runs_[d];
    runs.clear();
    const std::int64_t length = grid.chunk_shape()[d];
    const auto add = [&](std::int64_t index, std::int64_t count, std::int64_t) {
      while (count > 0) {
        const std::int64_t chunk = index / length, start = index % length;
        const std::int64_t here = std::min(count, length - start);
        if (!runs.empty() && runs.back().chunk == chunk &&
            runs.back().start + runs.back().length == start)
          runs.back().length += here;
        else
          runs.push_back({chunk, start, here});
        index += here;
        count -= here;
      }
    };
    visit_positions(placement.axes[d], row, add);
    if (runs.empty()) return false;
  }
  at_ = Dims(rank);
  return true;
}

}  // namespace batchfs

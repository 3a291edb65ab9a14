#pragma once
// The chunks that a batch needs, one after the other: what a plan lists, without the plan.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/view/geometry.h"

namespace batchfs {

/// The placements that a plan has. `all` may point into `own`.
struct PlanPlacements {
  std::vector<VariablePlacement> own;
  std::vector<const VariablePlacement*> all;
};

/// Movable. Not thread-safe.
class ChunkWalk {
 public:
  /// The next rows; none at the end.
  using Rows = std::function<std::vector<Row>()>;

  /// `variables` outlive it. Numbers of variables are counted from `first_variable` on.
  ChunkWalk(const std::vector<const Variable*>& variables, PlanPlacements placements, Rows rows,
            std::uint32_t first_variable = 0)
      : variables_(&variables),
        placements_(std::move(placements)),
        next_rows_(std::move(rows)),
        first_variable_(first_variable) {}

  struct Chunk {
    std::uint32_t variable = 0;
    std::int64_t chunk = 0;  // linear number in the array's grid
    Box box;                 // what the row takes of it, in chunk coordinates
  };
  /// Chunks come in the order in which the plan first needs them, and most of them again and again.
  std::optional<Chunk> next();

 private:
  bool next_placement();
  bool find_runs(const VariablePlacement& placement, const Row& row);

  const std::vector<const Variable*>* variables_;
  PlanPlacements placements_;
  Rows next_rows_;
  std::uint32_t first_variable_;

  std::vector<Row> rows_;
  std::size_t row_ = 0, placement_ = 0;  // the next ones
  const VariablePlacement* current_ = nullptr;
  /// Consecutive indices inside one chunk.
  struct Run {
    std::int64_t chunk, start, length;
  };
  std::vector<std::vector<Run>> runs_;  // along each dimension of the current placement
  Dims at_;                             // the combination that is next
};

}  // namespace batchfs

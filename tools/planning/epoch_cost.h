#pragma once
// The bytes that an epoch decodes with a memory budget.

#include <optional>

#include "engine/pipeline/chunks/chunk_reuse.h"
#include "engine/view/view.h"
#include "tools/planning/view_cost.h"

namespace batchfs {

/// In bytes.
struct EpochCost {
  double kept = 0;        // decoded chunks that stay between batches, see kept_between_batches()
  bool all_stay = false;  // every chunk does
  double decoded = 0;     // an estimate, between the bounds if there are any
  struct Bounds {
    double least = 0, most = 0;
  };
  /// They hold for the first epoch, where one reader reads it in order and nothing else is read.
  /// Nothing for an epoch that is too long to follow, or of several lanes.
  std::optional<Bounds> bounds;
  /// By which batches share chunks in the estimate; nothing where there are no bounds.
  std::optional<ChunkReuse::Rules> rules;
  bool is_exact() const { return bounds && bounds->most <= kNear * bounds->least; }

  /// Figures are right within this factor.
  static constexpr double kNear = 1.1;
};

EpochCost estimate_epoch(const View& view, const ViewCost& cost, double budget);

/// Bytes that an epoch decodes for each byte of stored elements that goes into its batches.
double amplification(const View& view, const ViewCost& cost, const EpochCost& epoch);

/// How the batches of an epoch use chunks; nothing for one that is too long to follow.
std::optional<ChunkReuse> follow_epoch(const View& view, std::int64_t epoch = 0);

}  // namespace batchfs

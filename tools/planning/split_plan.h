#pragma once
// Summarizes the parts of a split side by side, for `batchfs plan`.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/samples/mask.h"
#include "engine/view/split/leak_check.h"
#include "engine/view/split/split_spec.h"

namespace batchfs {

struct SplitPlan {
  struct Part {
    std::string name;
    std::int64_t samples = 0, batches = 0;
    std::int64_t windows = 0;  // inside the part: samples, and windows dropped after the split
    std::int64_t gap = 0;      // of these, removed by the gap
  };
  /// Parts that together cover all windows: one group, or one per fold.
  struct Group {
    std::optional<std::int64_t> fold;
    std::vector<Part> parts;
    std::int64_t straddling = 0;  // windows with positions of several parts
    LeakCheck leaks;
  };

  std::string view;
  std::int64_t windows = 0;  // before all restrictions
  Dropped dropped;           // by restrictions before the split
  std::vector<Group> groups;
};

/// `parts`: the views of all parts of one view file.
SplitPlan plan_parts(const std::vector<std::shared_ptr<const View>>& parts);

/// `plans`: an object that maps each part to its plan.
Json split_json(const SplitPlan& plan, Json plans);

/// `scanned`: missing values, and therefore the samples, are known.
std::string split_text(const SplitPlan& plan, bool scanned);

}  // namespace batchfs

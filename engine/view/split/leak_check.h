#pragma once
// Do samples of two parts of a split share positions, and how near are they to each other? Measured
// from the positions that tensors take, not from the rules of the split.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/view/view.h"

namespace batchfs {

struct LeakCheck {
  /// The smallest distance along one dimension between samples of two parts that are within the gap
  /// of each other along every other dimension of the split: from the last position of one to the
  /// first of the other.
  struct Distance {
    std::string a, b;  // parts
    std::string dim;
    std::int64_t positions = 0;
    std::string time;  // "10d 6h"; empty along a dimension without times
  };

  bool made = true;         // false: too many footprints
  std::int64_t shared = 0;  // positions, over the dimensions of the split, of two or more parts
  std::vector<Distance> distances;
};

/// `parts`: views of one split, and of one fold of it. Reads coordinates only; may take 300 MB.
LeakCheck check_leaks(const std::vector<std::shared_ptr<const View>>& parts);

}  // namespace batchfs

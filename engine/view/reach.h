#pragma once
// The positions that a sample needs along a window dimension, and counts over such stretches.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchfs {

/// From the start of a window: a sample needs [start + begin, start + end) in all its tensors.
struct Reach {
  std::int64_t begin = 0, end = 1;
};

/// How many marked positions a stretch holds, in constant time. On a circle stretches may begin
/// before position 0 and pass over the end, also several times; elsewhere what lies outside counts
/// nothing. 8 bytes a position.
class MarkedCounts {
 public:
  MarkedCounts(const std::vector<bool>& marked, bool circle);

  /// Of the positions [begin, end).
  std::int64_t count(std::int64_t begin, std::int64_t end) const;
  std::int64_t all() const { return before_.back(); }

 private:
  std::int64_t before(std::int64_t position) const;

  std::vector<std::int64_t> before_;  // each position, and the end
  bool circle_;
};

}  // namespace batchfs

#pragma once
// Where the windows of listed samples may begin.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/samples/reach.h"

namespace batchfs {

/// The starts along one window dimension at which a window fits, wherever they lie to a stride.
class StartRule {
 public:
  /// `offsets`: the least and the most number of positions that tensors and "reserve" add, and 0.
  /// `center`: rows name the middle. Takes a bit for each position where windows begin at labels.
  StartRule(const WindowDim& window, std::int64_t length,
            std::pair<std::int64_t, std::int64_t> offsets, const Reach& reach, bool center);

  const std::string& dim() const { return window_.name; }
  /// The start for a row's position; -1: no window fits there.
  std::int64_t start(std::int64_t position) const {
    if (position < 0 || position >= length_) return -1;
    if (center_) {
      position -= window_.size / 2;
      if (window_.wrap && position < 0) position = length_ - 1 - (-1 - position) % length_;
    }
    if (position < first_ || position > last_) return -1;
    return is_marked(lacking_, position) || is_marked(unmatched_, position) ? -1 : position;
  }
  /// Why start() gave -1.
  std::string why(std::int64_t position) const;

 private:
  static bool is_marked(const std::vector<bool>& starts, std::int64_t position) {
    return !starts.empty() && starts[static_cast<std::size_t>(position)];
  }

  WindowDim window_;
  std::int64_t length_, first_, last_;
  std::pair<std::int64_t, std::int64_t> offsets_;
  bool center_;
  std::vector<bool> lacking_;    // starts without a label that they need; empty: none
  std::vector<bool> unmatched_;  // starts for which another source has nothing; empty: none
};

}  // namespace batchfs

#pragma once
// How many of each window's values are missing, for views that allow a share of them.

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/view/geometry.h"
#include "engine/view/samples/sample_index.h"

namespace batchfs {

/// The elements of a window's tensors that can be missing: those inside the selection.
class WindowElements {
 public:
  /// `placements` and `grid` must outlive this object. Throws not_supported for windows of 2^32
  /// elements and more.
  WindowElements(std::vector<const VariablePlacement*> placements, const WindowGrid& grid);
  std::int64_t of(std::int64_t window) const;

 private:
  /// Per placement and axis that is in a window: elements inside, by number of the start.
  struct Axis {
    std::size_t window;
    std::vector<std::int64_t> inside;
  };
  const WindowGrid* grid_;
  std::int64_t full_ = 0;                // of windows that lie inside
  std::vector<std::int64_t> whole_;      // per placement: elements along its other axes
  std::vector<std::vector<Axis>> axes_;  // empty where all windows lie inside
};

/// Counts of missing values, 4 bytes a window. add() may be called from several threads at once.
class MissingCounts {
 public:
  /// Throws not_supported for more windows than an index is made for.
  explicit MissingCounts(std::int64_t windows);
  void add(std::int64_t window, std::uint32_t values) {
    counts_[static_cast<std::size_t>(window)].fetch_add(values, std::memory_order_relaxed);
  }
  /// The windows of whose elements a share of at most `at_most` is missing.
  SampleIndex index(const WindowElements& elements, double at_most) const;

 private:
  std::vector<std::atomic<std::uint32_t>> counts_;
};

}  // namespace batchfs

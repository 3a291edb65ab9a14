#pragma once
// Does a footprint lie in a part, and is it outside the gaps that the part keeps?

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/view/split/cell_counts.h"
#include "engine/view/split/owners.h"

namespace batchfs {

/// Where a footprint lies relative to a part.
enum class PartVerdict : std::uint8_t {
  outside,     // no position of it is in the part
  straddling,  // some are
  in_gap,      // all are, and one of a part that this one yields to is too near
  sample,
};

/// Footprints along one axis that lie in the same cells, with and without the gap.
struct FootprintRun {
  std::int64_t first = 0, count = 0;  // numbers of the footprints
  /// Two where a footprint on a circle passes over its end; the second may be empty.
  std::array<CellSpan, 2> inside, near;
};

/// The first position and the end of a footprint along an axis; on a circle they may lie outside.
using FootprintAt = std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t number)>;

/// Calls `visit(box)` with each choice of a run along each axis, row-major.
template <class Visit>
void for_each_box(const std::vector<std::vector<FootprintRun>>& runs, Visit&& visit) {
  std::vector<std::size_t> at(runs.size());
  std::vector<const FootprintRun*> box(runs.size());
  for (;;) {
    for (std::size_t a = 0; a < runs.size(); ++a) box[a] = &runs[a][at[a]];
    visit(box);
    std::size_t a = runs.size();
    while (a > 0 && at[a - 1] + 1 == runs[a - 1].size()) at[--a] = 0;
    if (a == 0) return;
    ++at[a - 1];
  }
}

class PartBoxes {
 public:
  /// Throws invalid_argument for a gap of a length of time along a circle, or along labels that are
  /// not in order.
  PartBoxes(const RestrictedView& view, const SplitSpec& split, const SplitPart& part);

  const std::vector<SplitAxis>& axes() const { return axes_; }
  /// `count` footprints along an axis, as runs.
  std::vector<FootprintRun> runs(std::size_t axis, std::int64_t count, const FootprintAt& at) const;
  /// The verdict for one run along each axis.
  PartVerdict verdict(const std::vector<const FootprintRun*>& box) const;
  /// A footprint along an axis with the gap on both sides; it may lie outside of the selection.
  std::pair<std::int64_t, std::int64_t> widened(std::size_t axis, std::int64_t first,
                                                std::int64_t end) const;
  /// Positions of the longest block along an axis.
  std::int64_t longest_block(std::size_t axis) const;

 private:
  struct Gap {
    std::int64_t positions = 0;
    __int128 nanoseconds = 0;
    std::vector<__int128> times;  // empty: the gap is a number of positions
  };
  std::array<CellSpan, 2> cells(std::size_t axis, std::int64_t first, std::int64_t end) const;
  std::int64_t count(const CellCounts& counts, const std::vector<const FootprintRun*>& box,
                     std::array<CellSpan, 2> FootprintRun::*spans) const;

  std::vector<SplitAxis> axes_;
  std::vector<bool> circles_;
  std::vector<Gap> gaps_;               // per axis
  std::optional<CellCounts> others_;    // cells of other parts
  std::optional<CellCounts> stronger_;  // cells of parts that this one yields to
};

}  // namespace batchfs

#pragma once
// The positions that a sample needs along a window dimension, and counts over such stretches.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/view/samples/label_offsets.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Returns the number of marked positions in a stretch, in constant time. On a circle stretches may
/// begin before position 0 and pass over the end, also several times; elsewhere positions outside
/// count nothing. 8 bytes a position.
class MarkedCounts {
 public:
  MarkedCounts(const std::vector<bool>& marked, bool circle);

  /// Marked positions in [begin, end).
  std::int64_t count(std::int64_t begin, std::int64_t end) const;
  std::int64_t all() const { return before_.back(); }

 private:
  std::int64_t before(std::int64_t position) const;

  std::vector<std::int64_t> before_;  // each position, and the end
  bool circle_;
};

/// The positions that the tensors of a sample need along one window dimension.
struct Reach {
  /// Windows that begin at labels.
  struct Labelled {
    std::string restriction;  // that leaves out starts without these labels: "offsets", "reserve"
    std::string path;         // in the view's file
    std::shared_ptr<const LabelOffsets> labels;
  };

  /// A source without a match for some positions.
  struct Lacking {
    std::string path;  // of its join, in the view's file
    std::string source;
    std::vector<std::int64_t> offsets;  // of its windows, in positions
    std::shared_ptr<const MarkedCounts> missing;

    /// Does a window of the sample at `start` need such a position?
    bool touches(std::int64_t start, std::int64_t size) const;
  };

  std::int64_t size = 1;  // of a window
  std::int64_t begin = 0,
               end = 0;  // from the start, of windows at numbers of positions; 0, 0: none
  std::vector<Labelled> labelled;
  std::vector<Lacking> lacking;

  /// The footprint of the window at `start`: the first position and the end of all its windows.
  /// Precondition: its labels exist.
  std::pair<std::int64_t, std::int64_t> footprint(std::int64_t start) const;
};

/// Along a dimension, from the tensors that have it and from the numbers of "reserve".
Reach reach_of(const std::string& dim, std::int64_t size,
               const std::vector<TensorDefinition>& tensors, const std::vector<OffsetList>& reserve,
               const Dataset& dataset);

}  // namespace batchfs

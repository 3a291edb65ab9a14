#pragma once
// The chunks of one source of a view along its window dimensions: they form the groups of the order
// "block" where the view names the source ("by").

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/joined_axes.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Immutable, thread-safe. 8 bytes a position.
class SourceChunks {
 public:
  /// `numbers`: per window dimension, of each position of the selection.
  explicit SourceChunks(std::vector<std::vector<std::int64_t>> numbers)
      : numbers_(std::move(numbers)) {}

  /// The chunk of the source, of its longest along window dimension `w`, that holds a position of
  /// the selection. Where the source has nothing, that of the position before; along a dimension
  /// that it lacks, always 0.
  std::int64_t number(std::size_t w, std::int64_t position) const {
    return numbers_[w][static_cast<std::size_t>(position)];
  }
  const std::vector<std::int64_t>& along(std::size_t w) const { return numbers_[w]; }

 private:
  std::vector<std::vector<std::int64_t>> numbers_;
};

/// The chunks of the source that spec.order.by names; null where it names none, or the first, to
/// which the view's positions belong. Throws invalid_argument where its chunks make no groups.
std::shared_ptr<const SourceChunks> source_chunks(const ViewSpec& spec, const Dataset& dataset,
                                                  const std::vector<const Variable*>& variables,
                                                  const std::map<std::string, Positions>& selected,
                                                  JoinedAxes& joined);

}  // namespace batchfs

#pragma once
// Where the arrays of other sources have the positions of a view's selection.

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/joined/axis_join.h"
#include "engine/view/geometry.h"
#include "engine/view/samples/reach.h"
#include "engine/view/spec.h"

namespace batchfs {

/// Each list of positions is made when it is first requested. Thread-safe.
class JoinedAxes {
 public:
  /// `selected`, by dimension, outlives it.
  explicit JoinedAxes(const std::map<std::string, Positions>& selected) : selected_(selected) {}

  /// Array indices of the view's positions along dimension `d` of a variable; with `nanoseconds`,
  /// of the labels later by that much. Throws as AxisJoin::shifted() does.
  const Positions& along(const Variable& variable, std::size_t d, std::int64_t nanoseconds = 0);

  /// The same for each part of a concatenated dimension: kNone for positions of other parts.
  /// `positions` are the result of along().
  const std::vector<Positions>& in_parts(const ConcatAxis& concat, const Positions& positions);
  /// A placement of each part in place of one of a concatenated variable, which are numbered from
  /// that of the placement on.
  std::vector<VariablePlacement> in_parts(const Variable& variable,
                                          const VariablePlacement& placement);

  /// Where the variable looks durations of the tensor's offsets up among its own labels, its
  /// positions differ from offset to offset: a placement of each in place of one of all.
  std::vector<VariablePlacement> by_offset(const Variable& variable,
                                           const std::vector<OffsetList>& durations,
                                           const VariablePlacement& placement);

  /// Adds the positions along a window dimension at which variables of a tensor have no values, for
  /// sources whose join leaves such windows out.
  void add_lacking(const TensorDefinition& tensor, const std::string& dim, bool circle,
                   const Dataset& dataset, std::vector<Reach::Lacking>& lacking);

 private:
  const std::map<std::string, Positions>& selected_;
  std::mutex mutex_;  // guards known_ and parts_, whose elements stay where they are
  std::map<std::tuple<const AxisJoin*, std::string, std::int64_t>, Positions> known_;
  struct InParts {
    Positions positions;
    std::vector<Positions> parts;
  };
  std::map<const ConcatAxis*, std::list<InParts>> parts_;
};

/// How a tensor's offsets that are durations apply along a dimension.
struct JoinedOffsets {
  bool in_anchor = false;  // variables lie along the labels of the first source
  bool in_others = false;  // variables have labels of their own
};
JoinedOffsets joined_offsets(const TensorDefinition& tensor, const std::string& dim,
                             const Dataset& dataset);

/// Nanoseconds of each, for labels of other sources. Throws not_supported for months, and
/// invalid_argument on a circle.
std::vector<std::int64_t> fixed_lengths(const OffsetList& offsets, bool circle);

}  // namespace batchfs

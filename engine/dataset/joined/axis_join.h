#pragma once
// How a dimension of one store lies along that of another: where each label of the one is in the
// other.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/dataset/joined/join_labels.h"
#include "engine/dataset/positions.h"

namespace batchfs {

/// What a view says of one dimension of a source.
struct JoinRule {
  /// Which label stands for another one: the same, the nearest (of two as far away the larger), the
  /// last before it, the next after it; equal ones always.
  enum class Pick : std::uint8_t { exact, nearest, last, next } pick = Pick::exact;
  std::optional<double> distance;        // tolerance, of numbers; inclusive
  std::optional<std::int64_t> duration;  // the same, of times: nanoseconds
  /// Positions of the source for each of the first one's, in whose direction they come: cells of a
  /// finer grid. With `pick` exact, and without tolerance.
  std::int64_t ratio = 1;
  bool pads = false;  // values without a match are padding; else windows with them are no samples
};

/// A dimension with labels, for messages too.
struct JoinAxis {
  std::string source;  // "imerg"
  std::shared_ptr<const Dataset> dataset;
  std::string dim;
};

/// Immutable, thread-safe. 8 bytes a position, and 16 bytes a label where these are times.
class AxisJoin {
 public:
  /// Of every position of `anchor` the one of `own`. Throws invalid_argument, with `path` in front,
  /// for labels that occur twice or cannot be compared, and where no label has a match.
  AxisJoin(const JoinAxis& anchor, const JoinAxis& own, const JoinRule& rule, std::string path);

  /// By position of the anchor's dimension, ratio() of them for each; Positions::kNone where there
  /// is nothing.
  const Positions& positions() const { return positions_; }
  std::int64_t ratio() const { return rule_.ratio; }
  bool pads() const { return rule_.pads; }
  const std::string& source() const { return source_; }
  const std::string& path() const { return path_; }

  /// The same for labels that are so much later than the anchor's, which the source looks up among
  /// its own. Throws invalid_argument where labels are no times, and where none has a match.
  Positions shifted(std::int64_t nanoseconds) const;

 private:
  Positions match(std::int64_t nanoseconds) const;
  std::vector<std::int64_t> cells(std::int64_t nanoseconds) const;

  const std::string source_, anchor_source_, anchor_dim_, own_dim_, path_;
  const JoinRule rule_;
  std::shared_ptr<const JoinLabels> anchor_, own_;
  Positions positions_ = Positions::range(0, 0);
};

/// The positions of an array for those of a selection, `ratio` for each. Precondition: with a
/// ratio, the selection keeps the dimension.
Positions composed(const Positions& along, const Positions& selected, std::int64_t ratio = 1);

}  // namespace batchfs

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

/// A view's rule for one dimension of a source.
struct JoinRule {
  /// The label that stands for another one: the same, the nearest (of two equally distant the
  /// larger), the last before it, the next after it; always an equal one where it exists.
  enum class Pick : std::uint8_t { exact, nearest, last, next } pick = Pick::exact;
  std::optional<LabelNumber> distance;   // tolerance, of numbers; inclusive
  std::optional<std::int64_t> duration;  // the same for times: nanoseconds
  /// Positions of the source for each of the first one's, in the direction of the first one's
  /// labels: cells of a finer grid. With `pick` exact, and without tolerance.
  std::int64_t ratio = 1;
  /// In place of `ratio`: cells of the first one for each of the source's, a coarser grid, whose
  /// cells are repeated.
  std::int64_t coarser = 1;
  /// Labels are places on a circle: those that differ by a whole number of periods are equal. Only
  /// for numbers.
  std::optional<double> period = {};
  // positions without a match are padding; else windows that contain them are not samples
  bool pads = false;

  /// The rule as written in a view file: {"pick": "nearest", "period": 360}; `as` where it is not
  /// empty.
  std::string text(const std::string& as) const;
};

/// A dimension with labels, for messages too.
struct JoinAxis {
  std::string source;  // "imerg"
  std::shared_ptr<const Dataset> dataset;
  std::string dim;
};

/// Does its coordinate go round a circle of 360 degrees? See period_of().
bool has_longitudes(const JoinAxis& axis);

/// Immutable, thread-safe. 8 bytes a position, and 16 bytes a label where these are times.
class AxisJoin {
 public:
  /// Finds the position in `own` for every position of `anchor`. Throws invalid_argument, with
  /// `path` in front, for labels that occur twice or cannot be compared, where no label has a
  /// match, and for longitudes that several positions of a circle share.
  AxisJoin(const JoinAxis& anchor, const JoinAxis& own, const JoinRule& rule, std::string path);

  /// By position of the anchor's dimension, ratio() of them for each; Positions::kNone where there
  /// is nothing.
  const Positions& positions() const { return positions_; }
  std::int64_t ratio() const { return rule_.ratio; }
  bool pads() const { return rule_.pads; }
  const std::string& source() const { return source_; }
  const std::string& path() const { return path_; }

  /// The same for labels later by this time than the anchor's, which the source looks up among its
  /// own. Throws invalid_argument where labels are not times, and where none has a match.
  Positions shifted(std::int64_t nanoseconds) const;

 private:
  Error failure(const std::string& why) const;
  Positions match(std::int64_t nanoseconds) const;
  /// For each position of the anchor, kNone where there is no match.
  std::vector<std::int64_t> find(const JoinRule& rule, std::int64_t nanoseconds) const;
  std::vector<std::int64_t> nested(const JoinRule& rule, std::int64_t nanoseconds) const;
  void check_circle() const;

  const std::string source_, anchor_source_, anchor_dim_, own_dim_, path_;
  const JoinRule rule_;
  double rounding_ = 0;  // of labels on a circle
  std::shared_ptr<const JoinLabels> anchor_, own_;
  Positions positions_ = Positions::range(0, 0);
};

/// The positions of an array for those of a selection, `ratio` for each. Precondition: with a
/// ratio, the selection keeps the dimension.
Positions composed(const Positions& along, const Positions& selected, std::int64_t ratio = 1);

}  // namespace batchfs

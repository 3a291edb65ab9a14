#pragma once
// Where the samples' values lie along one axis of an output array, and their overlaps there.
//
// An object is the unit of a put: a chunk, or a shard. Along an axis each window start has pieces:
// which part of the sample's values goes to which part of which object. Where windows overlap,
// trimming cuts pieces, and means assign weights to positions of a window.

#include <cstdint>
#include <vector>

#include "engine/write/prediction/predicted_array.h"
#include "engine/write/prediction/prediction_writer.h"

namespace batchfs {

/// Along one axis.
struct AxisPiece {
  std::int64_t object;  // its number along the axis
  std::int64_t source;  // the first position in the sample's values
  std::int64_t target;  // the first position in the object
  std::int64_t count;

  friend bool operator==(const AxisPiece&, const AxisPiece&) = default;
};

/// Immutable once set_step() was called; thread-safe then.
class AxisWindows {
 public:
  /// How windows share positions of the axis.
  enum class Sharing : std::uint8_t {
    none,
    overlap,  // as `overlap` resolves it
    collide,  // in a way that only Overlap::last resolves
  };

  /// `starts`: of all windows along the axis's dimension, each once, ascending; not used where the
  /// axis has no window. Throws invalid_argument for an axis whose members contradict each other.
  AxisWindows(const PredictedAxis& axis, std::vector<std::int64_t> starts, Overlap overlap,
              bool is_grid);

  Sharing sharing() const { return sharing_; }
  std::int64_t length() const { return axis_.length; }
  const PredictedAxis& axis() const { return axis_; }

  /// Positions of an object. At first the whole axis.
  void set_step(std::int64_t step);
  std::int64_t step() const { return step_; }

  /// The pieces of a sample whose window begins at `start`, in the order of its values.
  std::vector<AxisPiece> pieces(std::int64_t start) const;
  /// The pieces in one object.
  std::vector<AxisPiece> pieces_in(std::int64_t object, std::int64_t start) const;
  /// The numbers of the objects with pieces of it, ascending.
  const std::vector<std::int64_t>& objects_of(std::int64_t start) const;

  bool is_weighted() const { return !weights_.empty(); }
  /// One for each position of a window's values; null where they are 1. For windows that are
  /// trimmed without being a grid: the square of the distance from the middle.
  const double* weights(std::int64_t start) const;

 private:
  std::size_t index_of(std::int64_t start) const;
  void find_sharing(Overlap overlap, bool is_grid);
  bool positions_collide() const;
  void cut(std::int64_t size, const std::vector<std::int64_t>& gaps, bool around);
  void weigh(std::int64_t size, const std::vector<std::int64_t>& gaps, bool around, bool cosine);
  /// Calls `call(source, place, count)` for runs of a window's positions that lie one after another
  /// along the axis.
  template <class Call>
  void each_segment(std::int64_t start, Call&& call) const;

  struct Cut {
    std::int64_t low, high;  // positions of the window that it keeps
  };

  const PredictedAxis axis_;
  const std::vector<std::int64_t> starts_;
  Sharing sharing_ = Sharing::none;
  std::int64_t step_ = 1;
  std::vector<Cut> cuts_;                              // by start; empty: windows are whole
  std::vector<std::vector<double>> weights_;           // each kind once
  std::vector<std::size_t> weights_of_;                // by start
  std::vector<std::vector<std::int64_t>> objects_of_;  // by start
};

}  // namespace batchfs

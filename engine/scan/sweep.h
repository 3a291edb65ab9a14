#pragma once
// Reads a view's selection of a variable once, chunk by chunk, several chunks at a time: for
// statistics and for finding missing values.

#include <functional>
#include <memory>
#include <vector>

#include "engine/dataset/selection.h"
#include "engine/pipeline/engine.h"
#include "engine/scan/sweep_source.h"

namespace batchfs {

/// Per dimension of a variable, as the functions below take them.
inline std::vector<const Positions*> pointers(const std::vector<Positions>& positions) {
  std::vector<const Positions*> result;
  for (const Positions& each : positions) result.push_back(&each);
  return result;
}

/// How many chunks of a variable hold something of a selection, given per dimension of the array.
/// Throws not_supported past 2^63.
std::int64_t touched_chunks(const Variable& variable,
                            const std::vector<const Positions*>& selected);

/// The chunks of a variable, or a made channel, that a selection touches, and the selected part of
/// each. Every selected element is in exactly one piece, also when the selection names a position
/// twice. Immutable.
class Sweep {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// `selected` per dimension of the array. Pieces are numbered row-major over the chunks, but that
  /// the dimension `fastest` is the fastest.
  Sweep(const Variable& variable, const std::vector<const Positions*>& selected,
        std::size_t fastest = kNone)
      : Sweep(array_source(variable), selected, fastest) {}
  Sweep(std::shared_ptr<const SweepSource> source, const std::vector<const Positions*>& selected,
        std::size_t fastest = kNone);

  std::int64_t pieces() const { return pieces_; }
  /// Pieces that follow one another along `fastest`; 1 without it.
  std::int64_t run() const { return run_; }
  /// Decoded bytes of all chunks that are read.
  std::uint64_t decoded_bytes() const;

  struct Axis {
    std::int64_t first = 0;             // how many selected indices come before, in ascending order
    std::vector<std::int64_t> indices;  // selected, counted from the box's start, ascending
  };
  struct Piece {
    Box box;  // array coordinates; the smallest that holds the selected part of the chunk
    std::vector<Axis> axes;  // per dimension of the array
  };
  Piece piece(std::int64_t number) const;
  /// Distinct selected indices along a dimension, ascending.
  const std::vector<std::int64_t>& indices(std::size_t dim) const { return dims_[dim].indices; }

  /// `values` are those of piece.box as float64, C order. Called once per piece from any thread, in
  /// any order, but a piece is begun only when all that come much before it are done.
  using Use = std::function<void(std::int64_t number, const Piece& piece,
                                 std::shared_ptr<const Buffer> values)>;
  /// Called from the thread that called read(), with growing numbers, the last of them the number
  /// of pieces to read where nothing fails.
  using Progress = std::function<void(std::int64_t pieces_done)>;
  /// Reads all pieces, decoded, or those from `first` to `end`. Waits for the end; throws the first
  /// error. Not for workers of this engine.
  void read(Engine& engine, const Use& use, const Progress& progress) const {
    read(engine, use, progress, 0, pieces_);
  }
  void read(Engine& engine, const Use& use, const Progress& progress, std::int64_t first,
            std::int64_t end) const;

 private:
  struct Dim {
    std::vector<std::int64_t> indices;  // distinct, ascending
    /// The begin of each touched chunk in `indices`, and the number of indices.
    std::vector<std::int64_t> cuts;
    std::int64_t chunks() const { return static_cast<std::int64_t>(cuts.size()) - 1; }
  };

  std::shared_ptr<const SweepSource> source_;
  std::vector<Dim> dims_;
  std::vector<std::size_t> order_;  // dimensions, slowest first
  std::int64_t pieces_ = 1, run_ = 1;
};

}  // namespace batchfs

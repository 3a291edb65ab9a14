#pragma once
// A regular chunk grid: v3 core, "Regular grids".

#include <cstdint>

#include "engine/base/dims.h"

namespace batchfs {

/// Chunks have the full `chunk_shape`, also at the array's edge.
class ChunkGrid {
 public:
  ChunkGrid() = default;
  /// Throws invalid_argument for a chunk length below 1, not_supported for more than 2^62 chunks.
  ChunkGrid(Dims array_shape, Dims chunk_shape);

  const Dims& array_shape() const { return array_shape_; }
  const Dims& chunk_shape() const { return chunk_shape_; }
  /// Chunks per dimension (0 where the array has length 0).
  const Dims& counts() const { return counts_; }
  std::int64_t chunk_count() const { return chunk_count_; }

  /// Row-major number of a chunk, and back.
  std::int64_t linear(const Dims& chunk) const;
  Dims chunk(std::int64_t linear) const;

  /// The elements of a chunk that exist: clipped to the array.
  Box box(const Dims& chunk) const;

 private:
  Dims array_shape_, chunk_shape_, counts_;
  std::int64_t chunk_count_ = 1;
};

}  // namespace batchfs

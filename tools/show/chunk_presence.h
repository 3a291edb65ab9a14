#pragma once
// Which of an array's chunks are in its store, as a table of few cells.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// Stored objects are chunks, or shards in an array of shards. Columns go along the dimension with
/// the most objects, rows along all others in row-major order; a cell stands for neighbours.
struct ChunkPresence {
  static constexpr std::int64_t kMaxColumns = 96, kMaxRows = 24;

  std::size_t column_dim = 0;
  std::int64_t columns = 0, rows = 0;    // cells
  std::int64_t objects = 0;              // of the grid
  bool is_known = false;                 // below is set
  std::int64_t stored = 0;               // of `objects`
  std::vector<std::int64_t> all, found;  // objects of each cell, row by row
  std::string why_unknown;
};

struct PresenceLimits {
  std::int64_t local_objects = 50'000, remote_objects = 5'000;  // of an array that is listed
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// Lists the array's objects, if that is allowed. Blocks. Throws only std::bad_alloc.
ChunkPresence chunk_presence(Store& store, const ArrayMetadata& metadata,
                             const PresenceLimits& limits);

}  // namespace batchfs

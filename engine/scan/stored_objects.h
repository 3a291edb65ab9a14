#pragma once
// The objects of an array that hold chunks: found by listing, or counted off the grid.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/dims.h"
#include "engine/dataset/positions.h"
#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

/// The object of a chunk (of a shard, in an array of shards).
std::string object_key(const ArrayMetadata& metadata, const Dims& chunk);

/// The chunk whose key below the array's path this is; nullopt when no chunk has that key. The
/// chunk may lie outside the grid of the array.
std::optional<Dims> chunk_of_key(const ArrayMetadata& metadata, std::string_view key);

/// Precondition: as chunk_of_key() returns it.
bool is_inside(const ChunkGrid& grid, const Dims& chunk);

/// Called for each object; false ends the walk.
using TakeObject = std::function<bool(const Dims& chunk, const std::string& key)>;
using TakeNote = std::function<void(const std::string& key, const std::string& why)>;

/// Lists the objects below an array: `take` gets the chunks inside `grid`, `note` the rest but the
/// array's metadata. `grid` is that of the stored objects. Throws what Store::list() throws.
void list_objects(Store& store, const ArrayMetadata& metadata, const ChunkGrid& grid,
                  const TakeObject& take, const TakeNote& note);

/// Chunk indices along each dimension, ascending; nullopt: all of them.
using ChunkSelection = std::vector<std::optional<std::vector<std::int64_t>>>;

/// The chunks, of this length along a dimension, that positions along it lie in.
std::vector<std::int64_t> chunks_of_positions(const Positions& positions, std::int64_t length);

/// The chunks of a grid that are selected, row-major, whether they are stored or not.
void for_each_selected(const ChunkGrid& grid, const ChunkSelection& selection,
                       const std::function<bool(const Dims& chunk)>& take);
std::uint64_t count_selected(const ChunkGrid& grid, const ChunkSelection& selection);
bool is_selected(const ChunkSelection& selection, const Dims& chunk);

}  // namespace batchfs

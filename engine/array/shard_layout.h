#pragma once
// Whether the inner chunks of an array's shards can be read alone.

#include <memory>

#include "engine/codec/sharding.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// The form of a stored chunk, or shard, of the array.
ChunkLayout chunk_layout_of(const ArrayMetadata& metadata);

/// The layout of the array's shards; null where chunks are not in shards, or where something is done
/// before or after sharding: then a shard is one chunk. Throws not_supported, invalid_argument.
std::shared_ptr<const ShardLayout> shard_layout_of(const ArrayMetadata& metadata);

}  // namespace batchfs

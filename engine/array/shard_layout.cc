#include "engine/array/shard_layout.h"

namespace batchfs {

ChunkLayout chunk_layout_of(const ArrayMetadata& metadata) {
  ChunkLayout layout{metadata.chunk_shape, metadata.type, metadata.fill_value};
  layout.stored = metadata.stored;
  return layout;
}

std::shared_ptr<const ShardLayout> shard_layout_of(const ArrayMetadata& metadata) {
  if (metadata.codecs.size() != 1 || metadata.codecs.front().name != "sharding_indexed")
    return nullptr;
  const CodecSpec& spec = metadata.codecs.front();
  return std::make_shared<const ShardLayout>(JsonRef(spec.configuration, spec.name),
                                             chunk_layout_of(metadata));
}

}  // namespace batchfs

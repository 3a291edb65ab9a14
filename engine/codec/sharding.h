#pragma once
// `sharding_indexed`: many inner chunks in one object, with an index of where each lies. Source: v3
// extension "sharding-indexed" 1.0.

#include <memory>
#include <optional>
#include <vector>

#include "engine/codec/chain.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

/// The configuration, checked.
struct ShardLayout {
  Dims inner_shape;
  ChunkGrid grid;                     // of inner chunks in one shard
  std::unique_ptr<CodecChain> inner;  // of one inner chunk
  std::unique_ptr<CodecChain> index;  // of the index
  std::uint64_t index_bytes = 0;      // stored
  bool index_at_end = true;

  ShardLayout(const JsonRef& configuration, const ChunkLayout& layout);
};

/// Where the inner chunks lie: (offset, length) from the shard's start; both UINT64_MAX: missing.
class ShardIndex {
 public:
  /// `stored` is the index as it lies in the shard, `object_size` the shard's size, to check
  /// against.
  ShardIndex(const ShardLayout& layout, std::span<const std::byte> stored,
             std::uint64_t object_size);

  struct Entry {
    std::uint64_t offset, length;
  };
  /// nullopt: this inner chunk is missing. Throws corrupt for an entry outside the object.
  std::optional<Entry> entry(std::int64_t inner) const;
  std::uint64_t bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  std::vector<Entry> entries_;
  std::uint64_t object_size_;
};

/// The codecs of a `codecs` list of a configuration.
std::vector<CodecSpec> parse_codec_list(const JsonRef& list);

}  // namespace batchfs

#pragma once
// Advice on a copy of very many small objects, which file systems and object stores are slow with.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/write/rechunk_arrays.h"

namespace batchfs {

/// Objects of an array, one for each chunk or shard. UINT64_MAX where there are more.
std::uint64_t object_count(const RechunkArray& array);

struct ShardAdvice {
  std::string array;            // that has the most objects; its path in the output
  std::uint64_t objects = 0;    // of it
  std::uint64_t bytes = 0;      // decoded, of one of its chunks
  std::uint64_t remaining = 0;  // its objects with `shards`
  /// Lengths by dimension that all arrays can have; empty: there are none.
  std::vector<std::pair<std::string, std::int64_t>> shards;
};

/// nullopt where no array without shards has many objects that are small.
std::optional<ShardAdvice> advise_on_shards(const std::vector<RechunkArray>& arrays);

}  // namespace batchfs

#pragma once
// Records whether each shard that a batch takes chunks from existed, so that a shard which appears
// in between is found: a batch never mixes versions (batchfs-semantics(7)).

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "engine/array/array.h"
#include "engine/base/error.h"

namespace batchfs {

/// Not thread-safe. Holds no array: they outlive it.
class ShardPresence {
 public:
  /// To be called when a chunk of a sharded `array` is taken: from its shard, or as missing because
  /// the shard is. Returns an error of the code stale when an earlier chunk of the shard met the
  /// other case.
  std::optional<Error> observe(const Array& array, std::int64_t shard, bool missing) {
    const auto [seen, is_new] = missing_.try_emplace({&array, shard}, missing);
    if (is_new || seen->second == missing) return std::nullopt;
    return Error(ErrorCode::stale,
                 "a shard appeared while its chunks were read; open it again to see the new one",
                 array.metadata().path);
  }

 private:
  std::map<std::pair<const Array*, std::int64_t>, bool> missing_;
};

}  // namespace batchfs

#pragma once
// Where the stored chunks of an array lie, for reports: nothing but shard indexes is read.

#include <memory>
#include <optional>

#include "engine/array/array.h"
#include "engine/array/chunk_locator.h"

namespace batchfs {

/// Thread-safe.
class StoredPlaces {
 public:
  explicit StoredPlaces(const Array& array);

  struct Place {
    std::string key;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> size;  // nullopt: not known without a request
    bool in_shard = false;
  };
  /// nullopt: the chunk is missing. An object of its own in a remote store is not looked at. Blocks.
  /// Throws as reading the chunk would.
  std::optional<Place> find(std::int64_t chunk) const;

 private:
  const ChunkGrid grid_;
  const std::shared_ptr<Store> store_;
  const ChunkLocator locator_;
};

}  // namespace batchfs

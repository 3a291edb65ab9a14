#include "engine/array/stored_places.h"

#include <utility>

#include "engine/array/shard_layout.h"
#include "engine/base/awaited.h"

namespace batchfs {

StoredPlaces::StoredPlaces(const Array& array)
    : grid_(array.grid()),
      store_(array.shared_store()),
      locator_(store_, std::make_shared<const ArrayMetadata>(array.metadata()),
               shard_layout_of(array.metadata())) {}

std::optional<StoredPlaces::Place> StoredPlaces::find(std::int64_t chunk) const {
  ChunkLocator::Location location = awaited<ChunkLocator::Outcome>(
      [&](auto done) { locator_.locate(grid_.chunk(chunk), std::move(done)); });
  if (!location.place) return std::nullopt;
  ChunkPlace& found = *location.place;
  Place place{std::move(found.key), found.offset, found.length, found.length.has_value()};
  if (!place.in_shard && store_->is_local()) {
    place.size = store_->size(place.key);
    if (!place.size) return std::nullopt;
  }
  return place;
}

}  // namespace batchfs

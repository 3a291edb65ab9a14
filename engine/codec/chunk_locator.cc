#include "engine/codec/chunk_locator.h"

#include <utility>

namespace batchfs {

ChunkLocator::ChunkLocator(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata,
                           std::shared_ptr<const ShardLayout> shards)
    : store_(std::move(store)), metadata_(std::move(metadata)), shards_(std::move(shards)) {}

std::string ChunkLocator::object_key(const Dims& chunk) const {
  const std::string key = metadata_->key_encoding.key(chunk);
  return metadata_->path.empty() ? key : metadata_->path + "/" + key;
}

void ChunkLocator::locate(const Dims& chunk, std::function<void(Outcome)> done) const {
  if (!shards_) return done(ChunkPlace{object_key(chunk), 0, std::nullopt});
  // The inner chunk's shard and place in it.
  Dims outer, inner;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::int64_t per_shard = metadata_->chunk_shape[d] / shards_->inner_shape[d];
    outer.push_back(chunk[d] / per_shard);
    inner.push_back(chunk[d] % per_shard);
  }
  const std::string key = object_key(outer);
  const std::int64_t number = shards_->grid.linear(inner);
  auto look_up = [key, number, done](const ShardIndexCache::IndexPtr& index) {
    if (index == nullptr) return done(std::optional<ChunkPlace>());
    std::optional<ShardIndex::Entry> entry;
    try {
      entry = index->entry(number);
    } catch (...) {
      return done(std::current_exception());
    }
    if (!entry) return done(std::optional<ChunkPlace>());
    done(ChunkPlace{key, entry->offset, entry->length});
  };
  if (const auto index = indexes_.find(key)) return look_up(*index);
  // Where asking costs a round trip, what an index points to is checked when it is read.
  std::optional<std::uint64_t> size = UINT64_MAX;
  if (store_->is_local()) {
    try {
      size = store_->size(key);
    } catch (...) {
      return done(std::current_exception());
    }
  }
  if (!size) {
    indexes_.insert(key, nullptr);
    return look_up(nullptr);
  }
  const ByteRange range{0, shards_->index_bytes, shards_->index_at_end};
  store_->read_async(key, range, [this, key, size, look_up, done](ReadOutcome outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) return done(*error);
    ShardIndexCache::IndexPtr index;
    try {
      const auto& bytes = std::get<std::optional<Buffer>>(outcome);
      if (!bytes && store_->is_local())
        throw Error(ErrorCode::stale, "the shard has gone while it was read", key);
      if (bytes) index = std::make_shared<ShardIndex>(*shards_, bytes->span(), *size);
    } catch (...) {
      return done(std::current_exception());
    }
    indexes_.insert(key, index);
    look_up(index);
  });
}

std::optional<ChunkPlace> ChunkLocator::locate_local(const Dims& chunk) const {
  std::optional<ChunkPlace> place;
  std::exception_ptr failed;
  locate(chunk, [&](Outcome outcome) {  // called before locate() returns
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) failed = *error;
    else place = std::move(std::get<std::optional<ChunkPlace>>(outcome));
  });
  if (failed) std::rethrow_exception(failed);
  return place;
}

}  // namespace batchfs

#include "engine/array/chunk_locator.h"

#include <utility>

#include "engine/store/object_versions.h"

namespace batchfs {

namespace {

constexpr std::chrono::seconds kAbsence{5};

ShardIndexCache::Clock::duration absence_in(const Store& store) {
  if (store.is_fixed()) return ShardIndexCache::Clock::duration::max();
  return store.is_local() ? ShardIndexCache::Clock::duration::zero() : kAbsence;
}

}  // namespace

ChunkLocator::ChunkLocator(std::shared_ptr<Store> store,
                           std::shared_ptr<const ArrayMetadata> metadata,
                           std::shared_ptr<const ShardLayout> shards)
    : store_(std::move(store)),
      metadata_(std::move(metadata)),
      shards_(std::move(shards)),
      presence_(std::make_shared<ArrayPresence>(store_, metadata_)),
      indexes_(64 << 20, absence_in(*store_)) {}

void ChunkLocator::confirm_missing(const std::string& key,
                                   std::function<void(std::exception_ptr)> done) const {
  presence_->confirm([this, key, done = std::move(done)](std::exception_ptr error) {
    if (!error && !store_->is_local()) indexes_.insert(key, nullptr);
    done(std::move(error));
  });
}

std::string ChunkLocator::object_key(const Dims& chunk) const {
  const std::string key = metadata_->key_encoding.key(chunk);
  return metadata_->path.empty() ? key : metadata_->path + "/" + key;
}

void ChunkLocator::locate(const Dims& chunk, std::function<void(Outcome)> done) const {
  presence_->begin();
  if (!shards_) {
    const std::string key = object_key(chunk);
    if (!store_->is_local() && indexes_.find(key)) return done(Location{std::nullopt, true});
    return done(Location{ChunkPlace{key, 0, std::nullopt}});
  }
  // The inner chunk's shard and place in it.
  Dims outer, inner;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::int64_t per_shard = metadata_->chunk_shape[d] / shards_->inner_shape[d];
    outer.push_back(chunk[d] / per_shard);
    inner.push_back(chunk[d] % per_shard);
  }
  const std::string key = object_key(outer);
  const std::int64_t number = shards_->grid.linear(inner);
  const auto look_up = [key, number, done](const ShardIndexCache::IndexPtr& index) {
    if (index == nullptr) return done(Location{std::nullopt, true});
    std::optional<ShardIndex::Entry> entry;
    try {
      entry = index->entry(number);
    } catch (...) {
      return done(std::current_exception());
    }
    if (!entry) return done(Location{});
    done(Location{ChunkPlace{key, entry->offset, entry->length}});
  };
  const auto missing = [this, key, look_up, done] {
    confirm_missing(key, [look_up, done](std::exception_ptr error) {
      if (error) return done(std::move(error));
      look_up(nullptr);
    });
  };
  // Where asking costs a round trip, an index entry is checked when its bytes are read.
  std::optional<std::uint64_t> size = UINT64_MAX;
  const auto known = indexes_.find(key);
  try {
    // A chunk that the index does not have is not read: the shard is looked at in its place.
    if (known && *known && store_->is_local() && !(*known)->entry(number) && !store_->size(key))
      throw ObjectVersions::vanished(key);
    if (!known && store_->is_local()) size = store_->size(key);
  } catch (...) {
    return done(std::current_exception());
  }
  if (known) return look_up(*known);
  if (!size) return missing();
  const ByteRange range{0, shards_->index_bytes, shards_->index_at_end};
  /// `is_last`: an index that cannot be right is not read once more, past caches.
  const auto take = [this, key, size, look_up, missing, done](ReadOutcome outcome, bool is_last) {
    ShardIndexCache::IndexPtr index;
    try {
      if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
        std::rethrow_exception(*error);
      const auto& bytes = std::get<std::optional<Buffer>>(outcome);
      if (!bytes && store_->is_local())
        throw Error(ErrorCode::stale, "the shard has gone while it was read", key);
      if (bytes) index = std::make_shared<ShardIndex>(*shards_, bytes->span(), *size);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::corrupt && !is_last) return false;
      done(std::current_exception());
      return true;
    } catch (...) {
      done(std::current_exception());
      return true;
    }
    if (index == nullptr) {
      missing();
    } else {
      indexes_.insert(key, index);
      look_up(index);
    }
    return true;
  };
  store_->read_async(key, range, [this, key, range, take](ReadOutcome outcome) {
    if (take(std::move(outcome), store_->is_local())) return;
    read_past_caches(*store_, key, range,
                     [take](ReadOutcome again) { take(std::move(again), true); });
  });
}

ChunkLocator::Location ChunkLocator::locate_local(const Dims& chunk) const {
  Location location;
  std::exception_ptr failed;
  locate(chunk, [&](Outcome outcome) {  // called before locate() returns
    if (auto* error = std::get_if<std::exception_ptr>(&outcome))
      failed = *error;
    else
      location = std::move(std::get<Location>(outcome));
  });
  if (failed) std::rethrow_exception(failed);
  return location;
}

}  // namespace batchfs

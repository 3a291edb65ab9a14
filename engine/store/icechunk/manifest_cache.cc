#include "engine/store/icechunk/manifest_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/store/icechunk/repository.h"

namespace batchfs::icechunk {

namespace {

/// Of manifests that the snapshot says nothing about.
constexpr std::uint64_t kSupposedBytes = 1 << 20;

}  // namespace

ManifestCache::ManifestCache(std::shared_ptr<Store> store, std::shared_ptr<const Snapshot> snapshot,
                             Limits limits)
    : snapshot_(std::move(snapshot)), limits_(limits), store_(std::move(store)) {}

ManifestCache::~ManifestCache() { decoder_.stop(); }

std::uint64_t ManifestCache::file_bytes(const ObjectId& id) const {
  const Snapshot::ManifestFile* file = snapshot_->manifest_file(id);
  return file == nullptr || file->bytes == 0 ? kSupposedBytes : file->bytes;
}

void ManifestCache::get(const ObjectId& id, Done done) {
  std::shared_ptr<const Manifest> manifest;
  {
    const std::lock_guard lock(mutex_);
    const auto [it, is_new] = entries_.try_emplace(id);
    Entry& entry = it->second;
    if (entry.manifest != nullptr) {
      used_.splice(used_.begin(), used_, entry.use);
      manifest = entry.manifest;
    } else {
      entry.waiting.push_back(std::move(done));
      if (!is_new) return;
      to_load_.push_back(id);
    }
  }
  if (manifest != nullptr) return done(std::move(manifest));
  start_more();
}

/// As many files are under way as the memory for one decompressed manifest holds.
void ManifestCache::start_more() {
  for (;;) {
    ObjectId id;
    {
      const std::lock_guard lock(mutex_);
      if (to_load_.empty()) return;
      const std::uint64_t bytes = file_bytes(to_load_.front());
      if (loads_ > 0 && (bytes > limits_.payload || loading_ > limits_.payload - bytes)) return;
      id = to_load_.front();
      to_load_.pop_front();
      loading_ += bytes;
      ++loads_;
    }
    load(id);
  }
}

void ManifestCache::load(const ObjectId& id) {
  const std::string key = manifest_key(id);
  if (!store_->is_local()) {
    store_->read_async(key, {0, UINT64_MAX, false, limits_.payload},
                       [this, id](ReadOutcome outcome) {
                         const auto shared = std::make_shared<ReadOutcome>(std::move(outcome));
                         decoder_.post(0, [this, id, shared] { arrived(id, std::move(*shared)); });
                       });
    return;
  }
  ReadOutcome outcome;
  try {
    const std::optional<std::uint64_t> size = store_->size(key);
    if (size && *size > limits_.payload)
      throw Error(ErrorCode::no_memory,
                  fmt::format("the file has {}, there is memory for {}; give more with --memory",
                              format_size(*size), format_size(limits_.payload)));
    outcome = store_->read(key);
  } catch (...) {
    outcome = std::current_exception();
  }
  arrived(id, std::move(outcome));
}

void ManifestCache::arrived(const ObjectId& id, ReadOutcome outcome) {
  Outcome result;
  try {
    if (const auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    const auto& bytes = std::get<std::optional<Buffer>>(outcome);
    if (!bytes) throw removed("manifest " + base32(id));
    const std::lock_guard lock(decoding_);
    result = Manifest::parse(bytes->span(), id, limits_.payload, limits_.memory);
  } catch (Error& error) {
    result = std::make_exception_ptr(error.at(store_->url() + "/" + manifest_key(id)));
  } catch (...) {
    result = std::current_exception();
  }
  outcome = std::nullopt;
  finish(id, std::move(result));
}

void ManifestCache::finish(const ObjectId& id, Outcome outcome) {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    loading_ -= file_bytes(id);
    --loads_;
    const auto it = entries_.find(id);
    waiting = std::move(it->second.waiting);
    if (const auto* manifest = std::get_if<std::shared_ptr<const Manifest>>(&outcome)) {
      ++loaded_;
      it->second.manifest = *manifest;
      used_.push_front(id);
      it->second.use = used_.begin();
      memory_ += (*manifest)->memory();
      while (memory_ > limits_.memory && used_.size() > 1) {
        const auto last = entries_.find(used_.back());
        memory_ -= last->second.manifest->memory();
        entries_.erase(last);
        used_.pop_back();
        ++evicted_;
      }
    } else {
      entries_.erase(it);
    }
  }
  for (const Done& done : waiting) done(outcome);
  start_more();
}

std::vector<Store::Counter> ManifestCache::counters() const {
  const std::lock_guard lock(mutex_);
  return {
      {"manifests_loaded", loaded_}, {"manifests_evicted", evicted_}, {"manifest_memory", memory_}};
}

}  // namespace batchfs::icechunk

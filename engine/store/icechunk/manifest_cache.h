#pragma once
// The manifests of a snapshot that are in use.

#include <memory>
#include <vector>

#include "engine/store/icechunk/manifest.h"
#include "engine/store/icechunk/snapshot.h"
#include "engine/store/store.h"
#include "engine/store/virtual/index_cache.h"

namespace batchfs::icechunk {

/// Thread-safe.
class ManifestCache {
 public:
  ManifestCache(std::shared_ptr<Store> store, std::shared_ptr<const Snapshot> snapshot,
                IndexCache::Limits limits);

  using Outcome = std::variant<std::shared_ptr<const Manifest>, std::exception_ptr>;
  using Done = std::function<void(Outcome)>;
  /// Like IndexCache::get().
  void get(const ObjectId& id, Done done);

  std::vector<Store::Counter> counters() const { return cache_.counters(); }

 private:
  const std::shared_ptr<const Snapshot> snapshot_;
  IndexCache cache_;
};

}  // namespace batchfs::icechunk

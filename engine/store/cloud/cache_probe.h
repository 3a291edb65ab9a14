#pragma once
// Do the shared caches of a store work? For `batchfs doctor`.

#include <optional>
#include <string>
#include <vector>

#include "engine/store/store.h"

namespace batchfs {

struct CacheProbe {
  std::string cache;   // its URL
  std::string object;  // the key that was asked for; empty: none was found to ask for
  std::string server;  // of the store, as the cache is told: HOST or HOST:PORT
  double seconds = 0;  // of the second answer
  int status = 0;      // 0: no answer, see `error`
  std::string error;
  bool is_same = false;      // the bytes and the version are the store's
  bool is_older = false;     // no, but it has a version: of before the object was replaced
  bool has_version = false;  // the store names versions (ETag, Last-Modified)
  std::optional<bool> hit;   // the second time, as far as the cache says
};

/// Asks each cache of BATCHFS_VIA twice for a small object of the store that the user typed, with
/// its credentials. Empty for local stores, and where there are no caches. Throws what opening the
/// store throws.
std::vector<CacheProbe> probe_caches(const std::string& typed, const StoreConfig& config);

}  // namespace batchfs

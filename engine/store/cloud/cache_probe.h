#pragma once
// Do the shared caches of a store work? For `batchfs doctor`.

#include <optional>
#include <string>
#include <vector>

#include "engine/store/store.h"

namespace batchfs {

struct CacheProbe {
  std::string cache;   // its URL
  std::string object;  // the requested key; empty: the store has none of the usual ones
  std::string server;  // the store's, as in the Host header: HOST or HOST:PORT
  double seconds = 0;  // of the second answer
  int status = 0;      // 0: no answer, see `error`
  std::string error;
  bool is_same = false;      // the bytes and the version are the store's
  bool is_older = false;     // an earlier version of an object that was replaced since
  bool has_version = false;  // the store names versions (ETag, Last-Modified)
  std::optional<bool> hit;   // of the second request; nullopt: the cache does not report it
};

/// Asks each shared cache of the store twice for a small object of the store that the user typed,
/// with its credentials. Empty for local stores, and where there are no caches. Throws what opening
/// the store throws.
std::vector<CacheProbe> probe_caches(const std::string& typed, const StoreConfig& config);

}  // namespace batchfs

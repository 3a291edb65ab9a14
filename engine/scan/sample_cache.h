#pragma once
// Sample indices of views that skip missing values, kept on disk, so that a store is scanned once.
//
// A file holds the key it was made for, and a checksum: a damaged file, or one for another key, is
// treated as missing. Files appear whole, by renaming.

#include <memory>
#include <string>

#include "engine/store/store.h"
#include "engine/view/samples/sample_index.h"
#include "engine/view/view.h"

namespace batchfs {

/// The inputs that determine a view's samples: the store, its metadata, `versions` of the objects
/// that the view reads (SourceVersions::digests()), and the keys of the view that define its
/// windows and their contents.
std::string sample_key(const Store& store, const std::string& snapshot_id, const View& view,
                       const Json& versions);

/// $XDG_CACHE_HOME/batchfs, or .cache/batchfs in the home directory; empty when neither is known.
std::string user_cache_directory();

class SampleCache {
 public:
  /// Files go into `directory`/samples, which is made when it is needed. Empty: nothing is kept.
  explicit SampleCache(std::string directory);

  /// Null when there is none.
  std::shared_ptr<const SampleIndex> find(const std::string& key, std::int64_t windows) const;
  /// Throws io, access_denied; the file is then not there.
  void keep(const std::string& key, const SampleIndex& index) const;

 private:
  std::string path_of(const std::string& key) const;
  /// All but the hundred that were used last.
  void remove_old() const;
  std::string directory_;
};

}  // namespace batchfs

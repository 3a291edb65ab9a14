#pragma once
// Which version of a store a run reads: a digest of the versions of the objects of each array.
//
// The values of a run must be of one version of its store, also where it is continued by another
// process, or put together from the parts of several: their digests must be equal. A process asks
// for them before it reads values. Then reads of any later version of an object are stale
// (Store::state); that a missing object has appeared is for confirm() to find.
//
// The memory does not grow with the number of objects.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/scan/stored_objects.h"
#include "engine/store/store.h"
#include "engine/view/view.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// An array that a run reads. The store outlives it.
struct SourceArray {
  std::string name = {};  // its path; names differ
  Store* store = nullptr;
  std::shared_ptr<const ArrayMetadata> metadata;
  ChunkSelection objects = {};  // in the grid of stored objects; empty: all
  bool lists = false;           // the store lists those that exist, instead of being asked for each
  std::uint64_t positions = 0;  // a hash of the elements that are read
};

/// The inputs of the view's batches: its variables, as far as its samples reach, and the
/// coordinates of their dimensions. Each array once.
std::vector<SourceArray> source_arrays(const View& view);

class SourceVersions {
 public:
  struct Options {
    int threads = 0;  // 0: one per core, more for remote stores
    /// An object that cannot be read is one of its versions: for scans that report it.
    bool tolerates_unreadable = false;
    std::function<bool()> cancelled = {};  // asked several times a second, by the calling thread
  };

  /// Asks for the versions. Blocks. Throws what asking throws; interrupted.
  SourceVersions(std::vector<SourceArray> arrays, Options options);
  explicit SourceVersions(std::vector<SourceArray> arrays)
      : SourceVersions(std::move(arrays), Options()) {}

  /// {"t2m": "0123456789abcdef"}, the same in every process for the same versions.
  const Json& digests() const { return digests_; }
  /// Call it when everything was read. Throws stale, naming the arrays, when an object that was
  /// missing has appeared, or when one that did not fit in memory has changed. Blocks.
  void confirm() const;
  /// Where other processes read: asks for all versions again. Throws stale as confirm().
  void confirm_all() const;

 private:
  Json ask() const;

  const std::vector<SourceArray> arrays_;
  const Options options_;
  mutable bool must_confirm_ = false;  // an object was missing
  Json digests_;
};

/// The arrays whose digests differ: "'t2m', 'u10'", the first few of many. Empty: none.
std::string differing_arrays(const Json& a, const Json& b);

}  // namespace batchfs

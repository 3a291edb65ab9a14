#pragma once
// Is an array still in its store, as it was when the store was opened?
//
// A chunk that is missing stands for fill values, but only in an array that exists: every chunk of
// a removed array is missing. So before a missing chunk is taken for fill values, the array's
// metadata document is looked up: after the chunk was found missing, since a removal must not be
// seen half. The document must still have the version that it had first.
//
// In a local store that is one look at a file for each missing chunk. Elsewhere one request serves
// all chunks that were found missing while the request before was in flight, so missing chunks cost
// hardly any requests. Archives have fixed contents and are not asked.
//
// The document is the array's own (zarr.json, .zarray) where that exists; in a store that has
// consolidated metadata only, the consolidated document. Whether it exists is determined when a
// local array is opened, and when a chunk of a remote array is first wanted; no chunk is delivered
// before that is known. Earlier removals from a remote store with consolidated metadata are not
// noticed.

#include <functional>
#include <memory>

#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// Thread-safe.
class ArrayPresence {
 public:
  /// An array that was not read from a store (`metadata->source` is empty) is always present.
  ArrayPresence(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata);

  /// To be called when a chunk is wanted. Blocks at most for a local file.
  void begin();

  /// Calls `then` once it is known which document the array has: at once, or from a thread of the
  /// store. To be called after begin(). The store outlives the callback.
  void when_known(std::function<void()> then);
  /// Would when_known() call at once?
  bool is_known() const;

  using Done = std::function<void(std::exception_ptr)>;
  /// Calls `done` once: with null when the array is present, else with stale or with the error of
  /// the request; from any thread, possibly before this returns, and always before that for a local
  /// store. The store outlives the callback.
  void confirm(Done done);
  /// The same, blocking. Throws. Not for a store's callback, except of a local store.
  void confirm();

 private:
  struct State;
  const std::shared_ptr<Store> store_;
  const std::shared_ptr<State> state_;  // shared with requests in flight
};

}  // namespace batchfs

#pragma once
// The manifests of a snapshot that are in use: fetched when a chunk is first looked up there, kept
// decoded, given up when they take more memory than they may.
//
// Decoding takes about a microsecond a reference: it is done one manifest at a time, on a thread
// of its own unless the store is local. So at most one decompressed manifest is in memory.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "engine/store/icechunk/manifest.h"
#include "engine/store/icechunk/snapshot.h"
#include "engine/store/store.h"
#include "engine/store/timer_thread.h"

namespace batchfs::icechunk {

/// Thread-safe.
class ManifestCache {
 public:
  struct Limits {
    std::uint64_t payload;  // bytes of one manifest, fetched or decompressed
    std::uint64_t memory;   // bytes of the decoded ones
  };
  ManifestCache(std::shared_ptr<Store> store, std::shared_ptr<const Snapshot> snapshot,
                Limits limits);
  /// Those that wait end with Error{interrupted}. Not to be called by a callback.
  ~ManifestCache();

  using Outcome = std::variant<std::shared_ptr<const Manifest>, std::exception_ptr>;
  using Done = std::function<void(Outcome)>;
  /// `done` is called once, from any thread that may block; with a local store before get()
  /// returns, unless another thread is loading the manifest.
  void get(const ObjectId& id, Done done);

  std::vector<Store::Counter> counters() const;

 private:
  struct Entry {
    std::shared_ptr<const Manifest> manifest;  // null: being loaded
    std::vector<Done> waiting;
    std::list<ObjectId>::iterator use;  // of a loaded one
  };

  void load(const ObjectId& id);
  void arrived(const ObjectId& id, ReadOutcome outcome);
  void finish(const ObjectId& id, Outcome outcome);
  void start_more();
  std::uint64_t file_bytes(const ObjectId& id) const;

  const std::shared_ptr<const Snapshot> snapshot_;
  const Limits limits_;
  std::atomic<std::uint64_t> loaded_{0}, evicted_{0};

  std::mutex decoding_;  // one manifest at a time; taken before mutex_

  mutable std::mutex mutex_;  // guards what follows; never held while calling out
  std::map<ObjectId, Entry> entries_;
  std::list<ObjectId> used_;      // loaded ones, the latest first
  std::uint64_t memory_ = 0;      // of these
  std::deque<ObjectId> to_load_;  // waiting for room for their files
  std::uint64_t loading_ = 0;     // bytes of files under way
  int loads_ = 0;

  TimerThread decoder_;
  const std::shared_ptr<Store> store_;
};

}  // namespace batchfs::icechunk

#pragma once
// Chunks of remote stores on their way into host memory.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/array/array.h"
#include "gpu/program/chunk_arena.h"
#include "gpu/program/program_part.h"

namespace batchfs::gpu {

/// Not thread-safe.
class RemoteFetches {
 public:
  using Key = ChunkArena::Key;

  /// `arrived` is called for each fetch that ends, by any thread. May be empty.
  explicit RemoteFetches(std::function<void()> arrived);
  /// Waits for fetches in flight.
  ~RemoteFetches();
  RemoteFetches(const RemoteFetches&) = delete;
  RemoteFetches& operator=(const RemoteFetches&) = delete;

  /// Starts to fetch a chunk of `array`, unless it was started before.
  void start(const Array& array, const Key& key);
  /// Started, and not at its end.
  bool is_in_flight(const Key& key) const;
  /// The result of a fetch that was started; waits.
  std::shared_ptr<Fetched> take(const Key& key);
  /// The result is not needed.
  void drop(const Key& key);

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<std::shared_ptr<Fetched>>> fetches_;  // null inside: in flight
  int in_flight_ = 0;
  const std::function<void()> arrived_;
};

}  // namespace batchfs::gpu

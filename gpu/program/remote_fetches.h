#pragma once
// Chunks of remote stores on their way into host memory.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/array/array.h"
#include "engine/base/budget.h"
#include "gpu/program/chunk_arena.h"
#include "gpu/program/program_part.h"

namespace batchfs::gpu {

/// Not thread-safe.
class RemoteFetches {
 public:
  using Key = ChunkArena::Key;

  /// Memory of the engine's budget for chunks.
  struct Memory {
    std::uint64_t most = UINT64_MAX;  // decoded bytes of the chunks that are fetched ahead
    /// Reserves stored bytes, in any case. May be empty.
    std::function<Budget::Reservation(std::uint64_t bytes)> hold = {};
  };

  /// `arrived` is called for each fetch that ends, by any thread. May be empty.
  RemoteFetches(std::function<void()> arrived, Memory memory);
  /// Waits for fetches in flight.
  ~RemoteFetches();
  RemoteFetches(const RemoteFetches&) = delete;
  RemoteFetches& operator=(const RemoteFetches&) = delete;

  /// Starts to fetch a chunk of `array`, unless it was started before.
  void start(const Array& array, const Key& key);
  /// May a chunk be fetched ahead, beside those that were started and not taken?
  bool has_room() const;
  /// Started, and not at its end.
  bool is_in_flight(const Key& key) const;
  /// The result of a fetch that was started, which keeps its memory reserved; waits.
  std::shared_ptr<Fetched> take(const Key& key);
  /// The result is not needed.
  void drop(const Key& key);

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  struct Fetch {
    std::shared_ptr<std::shared_ptr<Fetched>> result;  // null inside: in flight
    std::uint64_t bytes;                               // decoded
  };
  void erase(std::map<Key, Fetch>::iterator fetch);

  std::map<Key, Fetch> fetches_;
  std::uint64_t bytes_ = 0;  // of them
  int in_flight_ = 0;
  const std::function<void()> arrived_;
  const Memory memory_;
};

}  // namespace batchfs::gpu

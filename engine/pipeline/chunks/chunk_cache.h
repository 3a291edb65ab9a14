#pragma once
// Decoded chunks, kept while there is memory, dropped by farthest next use.
//
// The order of batches is known, so the next use of a chunk is too, as far as the prefetcher has
// looked ahead: the chunk whose next use is farthest goes first (Belady's rule), chunks with no
// known use before all others, the least recently used of them first.
//
// A chunk that is read in small parts is kept as it is stored: more of them fit, and a part is
// decoded when it is needed.
//
// Chunks of arrays that are to stay (kept_arrays.h) and have no known use follow all other
// chunks without one.
//
// Fill values of objects that do not exist are kept for five seconds: the objects may appear.
//
// A chunk that was decoded straight into a batch is remembered where it lies there, for as long as
// that batch lives: the cache then holds no memory of its own for it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "engine/array/array.h"
#include "engine/base/budget.h"
#include "engine/base/buffer_pool.h"
#include "engine/telemetry/counters.h"

namespace batchfs {

struct ChunkKey {
  const Array* array = nullptr;
  std::int64_t chunk = 0;
  friend bool operator==(const ChunkKey&, const ChunkKey&) = default;
};

struct ChunkKeyHash {
  std::size_t operator()(const ChunkKey& key) const {
    const auto a = reinterpret_cast<std::uintptr_t>(key.array) * UINT64_C(0x9e3779b97f4a7c15);
    return (a ^ static_cast<std::uint64_t>(key.chunk)) * UINT64_C(0xff51afd7ed558ccd);
  }
};

/// Decoded elements (native order, not CF-decoded) of a box of a chunk. Holds its memory alive.
struct DecodedChunk {
  Box box;                          // chunk coordinates
  const std::byte* data = nullptr;  // of the element at box.start
  Dims strides;                     // bytes
  std::shared_ptr<const void> memory;
  bool object_missing = false;  // fill values, since its object does not exist

  const std::byte* at(const Dims& index) const {
    const std::byte* p = data;
    for (std::size_t d = 0; d < index.size(); ++d) p += (index[d] - box.start[d]) * strides[d];
    return p;
  }
};

/// A chunk as it is stored, or pieces of that, and the memory that it is counted with.
struct KeptChunk {
  EncodedChunk encoded;
  Budget::Reservation reservation;
};

/// Thread-safe. Times are the engine's count of batches opened; a use lies at now + its distance.
class ChunkCache {
 public:
  using Clock = std::chrono::steady_clock;
  /// `absence`: how long fill values of a missing object are kept.
  explicit ChunkCache(Counters& counters, Clock::duration absence = std::chrono::seconds(5))
      : counters_(counters), absence_(absence) {}

  /// The chunk, if its kept part covers `need`.
  std::optional<DecodedChunk> find(const ChunkKey& key, const Box& need);

  /// Keeps a chunk of `bytes` of memory, whose owner holds the reservation too: memory that is
  /// still being read stays counted after its chunk is evicted. `array` is held alive with it.
  /// `passing`: a reader is going through the array once; few such chunks are kept.
  void insert(const ChunkKey& key, std::shared_ptr<const Array> array, DecodedChunk chunk,
              std::uint64_t bytes, bool passing = false);
  /// Remembers a chunk inside other memory (a batch's) without holding that memory.
  void insert_weak(const ChunkKey& key, std::shared_ptr<const Array> array, DecodedChunk chunk);

  /// Is `need` there, decoded or as stored? Touches nothing.
  bool holds(const ChunkKey& key, const Box& need) const;

  /// The chunk as it is stored, if that is kept.
  std::shared_ptr<const KeptChunk> find_stored(const ChunkKey& key);
  /// Keeps it, in place of a decoded part of it.
  void insert_stored(const ChunkKey& key, std::shared_ptr<const Array> array,
                     std::shared_ptr<const KeptChunk> chunk);

  /// Returns the number of known uses of the chunk while it could still be cached. Uses that have
  /// begun are not counted.
  std::size_t uses(const ChunkKey& key) const;
  /// When the soonest of them comes.
  std::optional<std::uint64_t> next_use(const ChunkKey& key) const;
  /// Chunks that are decoded whole now can be kept until this time: more would not fit.
  /// `keeps_all`: everything fits that the coming batches' arrays consist of.
  void set_horizon(std::uint64_t time, bool keeps_all) {
    horizon_.store(time, std::memory_order_relaxed);
    keeps_all_.store(keeps_all, std::memory_order_relaxed);
  }
  bool keeps_all() const { return keeps_all_.load(std::memory_order_relaxed); }
  /// Are uses still being looked for (look_ahead.h)? Until all are known that will be, a chunk
  /// without a known use may have one.
  void set_looking(bool looking) { looking_.store(looking, std::memory_order_relaxed); }
  bool is_looking() const { return looking_.load(std::memory_order_relaxed); }
  /// Can all chunks of arrays of this many bytes, decoded, be kept in this memory? The rest is for
  /// batches.
  static bool can_keep_all(double bytes, std::uint64_t memory) {
    return bytes <= 0.75 * static_cast<double>(memory);
  }

  /// The memory of a chunk of this many decoded bytes. An entry of the cache itself takes about
  /// kEntryBytes: small chunks are many, and only kFreeEntries entries may take memory beside the
  /// budget.
  std::uint64_t memory_of(std::uint64_t bytes) const {
    return buffer_memory(bytes) +
           (entries_.load(std::memory_order_relaxed) < kFreeEntries ? 0 : kEntryBytes);
  }
  /// The memory of this many chunks.
  static double memory_of_all(double chunks, std::uint64_t bytes) {
    return chunks * static_cast<double>(buffer_memory(bytes)) +
           std::max(0.0, chunks - kFreeEntries) * kEntryBytes;
  }
  static constexpr std::uint32_t kEntryBytes = 1 << 10, kFreeEntries = 8 << 10;

  /// Is a chunk worth the memory? Reading an uncompressed local one again costs one copy, as taking
  /// it from here does.
  static bool is_worth_keeping(const Array& array) {
    return !array.chain().is_plain() || !array.store().is_local();
  }

  /// The chunks of these arrays, of which `bytes` are used, are to stay. Replaces the arrays of
  /// before.
  void keep_arrays(std::set<const Array*> arrays, std::uint64_t bytes);
  /// Memory that their chunks will take that are not here yet.
  std::uint64_t missing_bytes() const;
  bool keeps_arrays() const;
  std::set<const Array*> kept_arrays() const;

  /// A chunk that is used again was dropped for lack of memory, or not kept. Lately: until
  /// is_pressed() has been calm between two calls of age_pressure().
  void press() { pressed_.store(true, std::memory_order_relaxed); }
  void age_pressure() { was_pressed_ = pressed_.exchange(false); }
  bool is_pressed() const { return pressed_ || was_pressed_; }

  /// The time of a use that has begun, before all that come: its chunk is evicted last.
  static constexpr std::uint64_t kBegun = 1;
  /// After all times of uses: with evict_one(), chunks with a known use stay, and those of the
  /// arrays that are to stay.
  static constexpr std::uint64_t kSpared = UINT64_MAX / 2;

  /// A use of the chunk is coming at a time after kBegun, has begun, or is over. One that is over
  /// is removed with the time that it has here.
  void add_use(const ChunkKey& key, std::uint64_t time);
  void begin_use(const ChunkKey& key, std::uint64_t time);
  void remove_use(const ChunkKey& key, std::uint64_t time);

  /// Drops the entry with the farthest next use. With `keep_until`, only one that is not used up to
  /// that time. False when there is none.
  bool evict_one(std::uint64_t keep_until = 0);

  /// Drops every chunk of arrays of this store.
  void forget(const Store& store);

  /// Memory that the cache itself holds.
  std::uint64_t bytes() const;

 private:
  struct CachedChunk {
    std::shared_ptr<const Array> array;
    DecodedChunk chunk;  // memory is null for weak entries
    std::weak_ptr<const void> weak;
    std::shared_ptr<const KeptChunk> stored;  // instead of a decoded chunk
    std::uint64_t bytes = 0;                  // 0 for weak entries
    std::uint64_t rank = 0;                   // its place in by_rank_
    Clock::time_point since = {};             // when the object was found missing
  };
  bool is_outdated(const CachedChunk& cached) const {
    return cached.chunk.object_missing && Clock::now() - cached.since >= absence_;
  }
  using CachedChunks = std::unordered_map<ChunkKey, CachedChunk, ChunkKeyHash>;
  std::uint64_t rank_of(const ChunkKey& key) const;
  void erase_use(const ChunkKey& key, std::uint64_t time);
  void rerank(const ChunkKey& key);
  void put(const ChunkKey& key, CachedChunk cached);
  void erase(CachedChunks::iterator it);

  /// Guards the members below, but for the atomic ones. Lock order: after ChunkScheduler's and
  /// LookAhead's; no other lock is taken with it held.
  mutable std::mutex mutex_;
  CachedChunks chunks_;
  std::unordered_map<ChunkKey, std::multiset<std::uint64_t>, ChunkKeyHash> uses_;
  std::set<std::pair<std::uint64_t, const ChunkKey*>> by_rank_;  // keys live in chunks_' nodes
  std::deque<ChunkKey> weak_keys_;  // oldest first: swept as their batches go
  struct Passing {
    ChunkKey key;
    std::uint64_t bytes;
  };
  std::deque<Passing> passing_;  // oldest first
  std::uint64_t passing_bytes_ = 0;
  std::atomic<std::uint64_t> horizon_{UINT64_MAX};
  std::atomic<bool> keeps_all_{false};
  std::atomic<bool> looking_{false};
  std::uint64_t touched_ = 0;  // counts accesses, for the least recently used
  std::uint64_t bytes_ = 0;
  std::atomic<std::size_t> entries_ = 0;
  std::set<const Array*> kept_arrays_;  // compared only
  std::uint64_t kept_total_ = 0;        // bytes of their chunks, once all are here
  std::uint64_t kept_bytes_ = 0;        // of these, here
  std::atomic<bool> pressed_{false}, was_pressed_{false};
  Counters& counters_;
  const Clock::duration absence_;
};

}  // namespace batchfs

#pragma once
// Places decoded chunks in device memory and tracks which are present: a chunk that several batches
// need (x, and y a step later) is decoded once. The order of batches is known, so the chunk whose
// next use is farthest is evicted first, as in the engine's own cache.
//
// This is bookkeeping on the host for memory that it never touches: work on the device ends long
// after it was planned. Freed room therefore carries the numbers of the programs that still use it,
// and the next chunk placed there has to wait for them.

#include <atomic>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/program/gpu_codec_support.h"

namespace batchfs::gpu {

/// Numbers of programs, ascending.
using ProgramNumbers = std::vector<std::uint64_t>;

struct DecodedChunk {
  std::uint64_t offset = 0, size = 0;  // of its room in the target area
  std::uint64_t first = 0,
                bytes = 0;  // the decoded bytes that are present, the first of them at `offset`
  const ChunkForm* form = nullptr;
  std::uint64_t decoded_by = 0;
  ProgramNumbers readers;
  bool pinned = false;  // the program being planned uses it
  std::string name;     // of a chunk that is decoded, for messages
  /// The GPU turned out to be unable to decode it: every batch that used it is assembled on the
  /// CPU.
  std::atomic<bool> bad{false};
  std::string why_bad;  // written before `bad`

  /// The first reason stays.
  void refuse(std::string why) {
    if (bad) return;
    why_bad = std::move(why);
    bad = true;
  }
};

/// Not thread-safe.
class ChunkArena {
 public:
  struct Key {
    std::uint32_t variable = 0;
    std::int64_t chunk = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  explicit ChunkArena(std::uint64_t size);

  /// Null: not there.
  std::shared_ptr<DecodedChunk> find(const Key& key) const;

  /// Finds room for a chunk, or makes it by evicting others. Adds to `after` the programs that the
  /// chunk placed there must wait for. nullopt: pinned chunks leave too little room.
  std::optional<std::uint64_t> allocate(std::uint64_t size, ProgramNumbers& after);
  /// Places the chunk in room from allocate(); drops an older form of it.
  void insert(const Key& key, std::shared_ptr<DecodedChunk> chunk);
  void drop(const Key& key);

  /// Program `number` reads the chunk.
  void add_reader(DecodedChunk& chunk, std::uint64_t number) const;

  /// Announces / withdraws a future use. Batches must be announced in order.
  void add_use(const Key& key, std::uint64_t batch);
  void remove_use(const Key& key, std::uint64_t batch);

  /// Every program up to `number` has ended.
  void ended(std::uint64_t number) { ended_ = number; }

  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return (key.variable * UINT64_C(0x9e3779b97f4a7c15) ^ static_cast<std::uint64_t>(key.chunk)) *
             UINT64_C(0xff51afd7ed558ccd);
    }
  };
  struct Entry {
    std::shared_ptr<DecodedChunk> chunk;
    std::uint64_t rank = 0;
  };
  struct Free {
    std::uint64_t size = 0;
    ProgramNumbers after;
  };
  std::uint64_t rank_of(const Key& key) const;
  void rerank(const Key& key);
  void release(std::uint64_t offset, std::uint64_t size, ProgramNumbers after);
  void merge(ProgramNumbers& to, const ProgramNumbers& from) const;

  std::unordered_map<Key, Entry, Hash> entries_;
  std::unordered_map<Key, std::deque<std::uint64_t>, Hash> uses_;
  std::set<std::pair<std::uint64_t, Key>> by_rank_;  // the last is evicted first
  std::map<std::uint64_t, Free> free_;               // by offset; no two touch
  std::uint64_t ended_ = 0, touched_ = 0, evictions_ = 0;
};

}  // namespace batchfs::gpu

#pragma once
// Where decoded chunks lie in device memory, and which of them are still there: a chunk that
// several batches need (x, and y a step later) is decoded once. The order of batches is known, so
// the chunk whose next use is farthest goes first, as in the engine's own cache.
//
// This is bookkeeping on the host for memory that it never touches: work on the device goes on long
// after it was planned, so that room that is given up carries the numbers of the programs that
// still use it, and what is put there next has to wait for them.

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
  std::uint64_t
      first = 0,
      bytes = 0;  // which of the chunk's decoded bytes are there, the first of them at `offset`
  const ChunkForm* form = nullptr;
  std::uint64_t decoded_by = 0;
  ProgramNumbers readers;
  bool pinned = false;  // the program that is being planned uses it
  std::string name;     // of one that is decoded, for messages
  /// It turned out that the GPU could not decode it: every batch that used it is put together on
  /// the CPU.
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

  /// Room for a chunk, found or made by giving up others. The programs that what is put there has
  /// to wait for are added to `after`. nullopt: what is pinned leaves too little.
  std::optional<std::uint64_t> allocate(std::uint64_t size, ProgramNumbers& after);
  /// What allocate() gave is the room of this chunk; an older form of it goes.
  void insert(const Key& key, std::shared_ptr<DecodedChunk> chunk);
  void drop(const Key& key);

  /// Program `number` reads it.
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
  std::set<std::pair<std::uint64_t, Key>> by_rank_;  // the last goes first
  std::map<std::uint64_t, Free> free_;               // by offset; no two touch
  std::uint64_t ended_ = 0, touched_ = 0, evictions_ = 0;
};

}  // namespace batchfs::gpu

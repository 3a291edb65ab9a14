#pragma once
// The stored form of a chunk as it was fetched: all of it, or the bytes that a part of the chunk
// needs.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/buffer.h"

namespace batchfs {

struct EncodedChunk {
  bool missing = true;  // not in the store: the chunk is all fill value
  /// And its object (a shard, or the chunk's own) does not exist, which may change. An index
  /// without the chunk does not change.
  bool object_missing = false;
  Buffer bytes;
  /// Plain chunks may be fetched in part: the C-order byte offset in the decoded chunk of bytes[0].
  std::uint64_t offset = 0;

  /// Compressed chunks may be fetched in pieces; then `bytes` is empty. Runs of the stored form, by
  /// their offset in it, that may overlap. The first one is its beginning. Chunks share pieces.
  struct Piece {
    std::uint64_t offset;
    std::shared_ptr<const Buffer> bytes;
  };
  std::vector<Piece> pieces;
  std::uint64_t stored_size = 0;  // of the whole, where there are pieces

  /// Bytes in memory.
  std::uint64_t held() const {
    std::uint64_t sum = bytes.size();
    for (const Piece& piece : pieces) sum += piece.bytes->size();
    return sum;
  }
};

using FetchDone = std::function<void(std::variant<EncodedChunk, std::exception_ptr>)>;

/// Where a chunk's stored bytes are: an object, or `length` bytes of one.
struct ChunkPlace {
  std::string key;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

}  // namespace batchfs

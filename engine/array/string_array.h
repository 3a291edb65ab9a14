#pragma once
// An array of strings, or bytes, of any length: v2 "|O" with a filter of string_form.h, v3 "string"
// and "variable_length_bytes".
//
// Such elements have no place of their own in a chunk, so the array is read as a whole. It serves
// for labels and for looking at it; batches cannot hold it.

#include <memory>
#include <string>
#include <vector>

#include "engine/array/string_form.h"
#include "engine/codec/codec.h"
#include "engine/store/store.h"
#include "engine/zarr/array_metadata.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

class ArrayPresence;

/// Immutable and thread-safe.
class StringArray {
 public:
  /// `memory`: bytes that the elements may take once they are read. Throws not_supported, by name,
  /// for other features of the metadata.
  StringArray(std::shared_ptr<Store> store, std::shared_ptr<const ArrayMetadata> metadata,
              std::uint64_t memory = UINT64_MAX);

  /// All elements in C order, strings in UTF-8. Blocking. Takes up to twice memory(). Throws corrupt
  /// naming the chunk, no_memory for more than memory(), not_supported for more than fits sensibly
  /// into any.
  std::vector<std::string> read() const;
  /// The strings of one chunk, C order over its full shape; the fill value where it is missing.
  /// Blocking. Takes up to memory(). Throws corrupt, no_memory, and what `presence` throws, which is
  /// of the same array.
  std::vector<std::string> read_chunk(const Dims& chunk, ArrayPresence& presence) const;
  std::uint64_t memory() const { return memory_; }

  /// read() refuses chunks of more bytes than this, stored or decoded.
  static constexpr std::uint64_t kMaxChunk = std::uint64_t{256} << 20;
  /// The strings of one stored chunk, C order. Throws corrupt.
  std::vector<std::string> decode(const Buffer& stored) const;

 private:
  std::string fill() const;
  std::string key_of(const Dims& chunk) const;
  Buffer read_stored(const std::string& key, Buffer begin, std::uint64_t most) const;
  std::vector<std::string> decode_read(const std::string& key, const Buffer& stored,
                                       std::uint64_t most) const;
  std::vector<std::string> decode(std::span<const std::byte> stored, std::uint64_t most) const;
  [[nodiscard]] Error too_large() const;

  const std::shared_ptr<Store> store_;
  const std::shared_ptr<const ArrayMetadata> metadata_;
  const ChunkGrid grid_;
  std::unique_ptr<const StringForm> form_;
  std::vector<std::unique_ptr<Codec>> codecs_;  // of bytes, in decode order
  const std::uint64_t memory_;
};

}  // namespace batchfs

#pragma once
// Copies an array of strings, or bytes, of any length: labels. It keeps its chunks.

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "engine/array/array_presence.h"
#include "engine/array/string_array.h"
#include "engine/store/output/output_store.h"
#include "engine/write/output_array.h"

namespace batchfs {

/// A chunk as the codec vlen-utf8 of numcodecs stores it: the number of strings, then each with its
/// length before it, in 32-bit numbers.
std::string encode_strings(const std::vector<std::string>& strings);

/// Thread-safe.
class StringCopy {
 public:
  /// `memory`: bytes for the chunks that are in memory at a time; `threads` that call copy().
  /// `array` and `output` outlive it. Throws as StringArray.
  StringCopy(const std::shared_ptr<Store>& store, std::shared_ptr<const ArrayMetadata> source,
             const OutputArray& array, OutputStore& output, std::uint64_t memory, int threads);

  std::size_t items() const;
  /// Copies the chunks of an item. Blocking. Throws as StringArray::read_chunk() and
  /// OutputStore::put().
  void copy(std::size_t item);

  std::uint64_t objects_put() const { return objects_; }
  std::uint64_t stored_bytes() const { return stored_; }

 private:
  void copy_chunk(const Dims& chunk, const StringArray& strings);

  const OutputArray& array_;
  OutputStore& output_;
  const ChunkGrid from_, to_;
  const StringArray share_, alone_;  // with the memory of one thread, and all of it
  ArrayPresence presence_;
  std::shared_mutex mutex_;  // held alone by a thread that takes all of the memory
  std::atomic<std::uint64_t> objects_{0}, stored_{0};
};

}  // namespace batchfs

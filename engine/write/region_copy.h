#pragma once
// Reads and writes of one region of an array: its values lie in memory in C order in between.
//
// Each class has a number of items, which several threads do at the same time, each once. `values`
// has the region's elements.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/array/array.h"
#include "engine/store/output/output_store.h"
#include "engine/write/output_array.h"

namespace batchfs {

/// Reads the chunks of a source array that lie in a region, each once.
class ChunkReader {
 public:
  /// Precondition: the region is a whole number of chunks, but at the array's end.
  ChunkReader(const Array& array, const Box& region);
  std::size_t items() const { return items_; }
  void read(std::size_t item, std::byte* values) const;

 private:
  const Array& array_;
  const Box region_;
  const Dims strides_;  // bytes
  Box chunks_;          // in the grid
  std::int64_t chunks_per_item_ = 1;
  std::size_t items_ = 0;
};

/// Encodes the chunks in a region and puts the objects that hold them. Chunks of fill values are
/// left out, where that is allowed, and objects without chunks.
class ObjectWriter {
 public:
  /// Precondition: the region is a whole number of objects, but at the array's end.
  ObjectWriter(const OutputArray& array, OutputStore& output, const Box& region);
  std::size_t items() const { return items_; }
  void write(std::size_t item, const std::byte* values);

  /// Stored bytes put so far.
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  std::uint64_t objects_put() const { return objects_put_; }

 private:
  struct Object {
    std::vector<Buffer> chunks;  // encoded; those that were left out are empty
    std::atomic<std::int64_t> left{0};
  };
  Buffer encode(const Dims& chunk, const std::byte* values) const;
  void put(std::size_t object);
  Dims object_index(std::size_t object) const;

  const OutputArray& array_;
  OutputStore& output_;
  const Box region_;
  const Dims strides_;  // bytes
  Box objects_;         // in the grid of objects
  Dims inner_;          // chunks of an object along each dimension
  std::int64_t chunks_per_object_ = 1, chunks_per_item_ = 1;
  std::size_t items_ = 0;
  std::mutex mutex_;  // guards the members `chunks` of under_way_
  std::vector<Object> under_way_;
  std::atomic<std::uint64_t> stored_bytes_{0}, objects_put_{0};
};

}  // namespace batchfs

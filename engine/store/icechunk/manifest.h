#pragma once
// A manifest of an Icechunk repository: where the chunks of arrays lie.
//
// A reference takes at most 24 bytes (28 in a grid of 2^32 chunks or more): its place in the box
// of all references of its array, its length, and the object or file with the offset there.
// Locations of files outside the repository are kept once each, inline chunks in one run of bytes.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/icechunk/file.h"
#include "engine/store/icechunk/object_id.h"
#include "engine/store/virtual/virtual_file.h"

namespace batchfs::icechunk {

/// Where a chunk lies.
struct ChunkPlace {
  enum class Kind : std::uint8_t { native, in_file, within } kind = Kind::within;
  ObjectId object{};  // native
  VirtualFile file{};
  Bytes bytes;  // within the manifest
  std::uint64_t offset = 0, length = 0;
};

/// Immutable.
class Manifest {
 public:
  /// Throws corrupt, not_supported, no_memory where the file takes more than `payload` bytes
  /// decompressed, or its references more than `memory`. `id` is the requested one.
  static std::shared_ptr<const Manifest> parse(Bytes file, const ObjectId& id,
                                               std::uint64_t payload, std::uint64_t memory);

  /// nullopt: the chunk was never written. Views the manifest.
  std::optional<ChunkPlace> find(const NodeId& array, std::span<const std::uint32_t> chunk) const;

  /// Calls `take` with each chunk of the array whose first indices are `begin`, ascending. Throws
  /// corrupt where the manifest's number of dimensions of the array is not `rank`.
  void list(const NodeId& array, std::size_t rank, std::span<const std::uint32_t> begin,
            const std::function<void(const std::vector<std::uint32_t>& chunk)>& take) const;

  std::uint64_t references() const { return references_; }
  std::uint64_t memory() const { return memory_; }
  std::uint32_t files() const { return static_cast<std::uint32_t>(files_.size()); }
  VirtualFile file(std::uint32_t number) const;

 private:
  class Parser;

  enum class Tag : std::uint32_t { native, in_file, within, wide };
  static constexpr std::uint32_t kLengthBits = 30;
  /// `head`: the tag and the length; `body` by tag: id and offset, file and offset, offset in
  /// within_, index of wide_.
  struct Record {
    std::uint32_t head;
    std::array<std::byte, 16> body;
  };
  static_assert(sizeof(Record) == 20);
  struct Wide {
    Tag tag;
    std::uint32_t file;
    ObjectId object;
    std::uint64_t offset, length;
  };
  struct Stored {
    std::uint32_t location, location_size, etag, etag_size;  // in texts_
    std::uint32_t modified;
  };
  struct Array {
    NodeId id;
    std::vector<std::uint32_t> from, size;  // the box, by dimension
    std::vector<std::uint32_t> near;        // position in the box; empty where there are no gaps
    std::vector<std::uint64_t> far;         // the same, of larger boxes
    std::vector<Record> records;
  };

  /// nullptr: no references.
  const Array* array_of(const NodeId& id) const;
  /// No bytes at offset 0 of a file: so references describe tiles that a TIFF file does not hold.
  static bool is_unstored(const Record& record);
  ChunkPlace place_of(const Record& record) const;

  std::vector<Array> arrays_;  // sorted by id
  std::vector<Wide> wide_;
  std::vector<Stored> files_;
  std::string texts_;
  std::vector<std::byte> within_;
  std::uint64_t references_ = 0, memory_ = 0;
};

}  // namespace batchfs::icechunk

#pragma once
// Where the blocks of a Blosc 1 frame lie. The table after the frame's header holds the start of
// each block, not its end: that is known only from inside the block. Threads write blocks in the
// order in which they finish, so a block lies between its start and that of the next one in the
// file. c-blosc does not mind blocks that overlap; a reader of only a part of a frame would miss
// the end of such a block, so batchfs refuses them. Blocks may coincide.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace batchfs {

/// The number of streams in a whole block, one after the other, each preceded by its size; a
/// shorter last block has one. `flags` and `typesize` as in the header.
std::uint32_t blosc_streams(std::uint8_t flags, std::uint32_t typesize, std::size_t block_size);

class BloscBlocks {
 public:
  /// `table` has four bytes for each block of a frame of `stored_size` bytes.
  BloscBlocks(std::span<const std::byte> table, std::uint64_t stored_size);

  std::uint64_t count() const { return starts_.size(); }
  /// The start from the frame's table, unchecked: any value.
  std::uint64_t start(std::uint64_t block) const { return starts_[block]; }
  /// The upper bound of the block's end: the start of the next block in the file, or the end of the
  /// frame.
  std::uint64_t end(std::uint64_t block) const;

 private:
  std::vector<std::uint32_t> starts_, sorted_;
  std::uint64_t stored_size_;
};

}  // namespace batchfs

#include "engine/codec/blosc_blocks.h"

#include <algorithm>
#include <cstring>

namespace batchfs {

std::uint32_t blosc_streams(std::uint8_t flags, std::uint32_t typesize, std::size_t block_size) {
  constexpr std::uint8_t kNotSplit = 0x10;
  constexpr std::uint32_t kMaxTypeSize = 16, kMinSplitSize = 128;
  return (flags & kNotSplit) == 0 && typesize <= kMaxTypeSize &&
                 block_size / typesize >= kMinSplitSize
             ? typesize
             : 1;
}

BloscBlocks::BloscBlocks(std::span<const std::byte> table, std::uint64_t stored_size)
    : starts_(table.size() / sizeof(std::uint32_t)), stored_size_(stored_size) {
  if (starts_.empty()) return;
  std::memcpy(starts_.data(), table.data(),
              starts_.size() * sizeof(std::uint32_t));  // little endian, as we are
  sorted_ = starts_;
  if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
}

std::uint64_t BloscBlocks::end(std::uint64_t block) const {
  const auto next = std::upper_bound(sorted_.begin(), sorted_.end(), starts_[block]);
  return next == sorted_.end() ? stored_size_ : std::min<std::uint64_t>(*next, stored_size_);
}

}  // namespace batchfs

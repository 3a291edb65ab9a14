#include "engine/codec/blosc_blocks.h"

#include <algorithm>
#include <cstring>

namespace batchfs {

BloscBlocks::BloscBlocks(std::span<const std::byte> table, std::uint64_t stored_size)
    : starts_(table.size() / sizeof(std::uint32_t)), stored_size_(stored_size) {
  if (starts_.empty()) return;
  std::memcpy(starts_.data(), table.data(), starts_.size() * sizeof(std::uint32_t));  // little endian, as we are
  sorted_ = starts_;
  if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
}

std::uint64_t BloscBlocks::end(std::uint64_t block) const {
  const auto next = std::upper_bound(sorted_.begin(), sorted_.end(), starts_[block]);
  return next == sorted_.end() ? stored_size_ : std::min<std::uint64_t>(*next, stored_size_);
}

}  // namespace batchfs

#include "engine/view/plan/chunk_set.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kGolden = UINT64_C(0x9e3779b97f4a7c15);
constexpr std::size_t kFirstWords = 64;

}  // namespace

bool ChunkSet::insert(std::int64_t chunk, const Reserve& reserve) {
  if (!has_bits_ && (count_ + 1) * 2 > words_.size()) grow(reserve);
  return enter(static_cast<std::uint64_t>(chunk));
}

/// Bits as soon as they take no more than numbers would.
void ChunkSet::grow(const Reserve& reserve) {
  const std::uint64_t bit_words = chunks_ / 64 + 1;
  std::uint64_t words = words_.empty() ? kFirstWords : words_.size() * 2;
  const bool to_bits = bit_words <= words;
  if (to_bits) words = bit_words;
  std::shared_ptr<const void> memory = reserve(words * sizeof(std::uint64_t));
  std::vector<std::uint64_t> before(words);
  before.swap(words_);
  std::swap(memory, memory_);
  has_bits_ = to_bits;
  count_ = 0;
  for (const std::uint64_t number : before)
    if (number != 0) enter(number - 1);
}

bool ChunkSet::enter(std::uint64_t chunk) {
  if (has_bits_) {
    const std::uint64_t bit = UINT64_C(1) << (chunk % 64);
    return (std::exchange(words_[chunk / 64], words_[chunk / 64] | bit) & bit) == 0;
  }
  const std::size_t mask = words_.size() - 1;
  std::size_t at = static_cast<std::size_t>((chunk + 1) * kGolden >> 20) & mask;
  for (; words_[at] != 0; at = (at + 1) & mask)
    if (words_[at] == chunk + 1) return false;
  words_[at] = chunk + 1;
  ++count_;
  return true;
}

Budget::Reservation reserve_for_list(Budget& budget, std::uint64_t bytes) {
  Budget::Reservation memory = budget.try_reserve(bytes);
  if (!memory)
    throw Error(ErrorCode::no_memory,
                fmt::format("listing the chunks of a batch takes more than {} of memory; give "
                            "more with --memory, or take smaller batches",
                            format_size(budget.limit())));
  return memory;
}

ChunkSet::Reserve reserve_from(Budget& budget) {
  return [&budget](std::uint64_t bytes) {
    return std::make_shared<const Budget::Reservation>(reserve_for_list(budget, bytes));
  };
}

}  // namespace batchfs

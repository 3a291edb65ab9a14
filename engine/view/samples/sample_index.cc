#include "engine/view/samples/sample_index.h"

#include <algorithm>
#include <bit>

#include "engine/base/error.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxWindows = INT64_C(1) << 36;  // 8 GiB of bits

std::size_t words_for(std::int64_t windows) {
  if (windows > kMaxWindows)
    throw Error(ErrorCode::not_supported,
                "\"missing\": \"skip\" with more than 2^36 windows; use a larger stride");
  return static_cast<std::size_t>((windows + 63) / 64);
}

}  // namespace

SampleIndex::SampleIndex(std::vector<std::uint64_t> words, std::int64_t windows)
    : words_(std::move(words)), windows_(windows) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (i % kBlock == 0) counts_.push_back(count);
    count += std::popcount(words_[i]);
  }
  counts_.push_back(count);
}

std::int64_t SampleIndex::window(std::int64_t sample) const {
  // The last block with at most `sample` samples before it that has one more.
  const auto after = std::upper_bound(counts_.begin(), counts_.end(), sample);
  const auto block = static_cast<std::size_t>(after - counts_.begin()) - 1;
  std::int64_t rest = sample - counts_[block];
  std::size_t i = block * kBlock;
  while (rest >= std::popcount(words_[i])) rest -= std::popcount(words_[i++]);
  std::uint64_t word = words_[i];
  for (; rest > 0; --rest) word &= word - 1;
  return static_cast<std::int64_t>(i) * 64 + std::countr_zero(word);
}

std::int64_t SampleIndex::samples_before(std::int64_t window) const {
  const auto word = static_cast<std::size_t>(window / 64);
  std::int64_t count = counts_[word / kBlock];
  for (std::size_t i = word / kBlock * kBlock; i < word; ++i) count += std::popcount(words_[i]);
  if (window % 64 != 0)
    count += std::popcount(words_[word] & ((std::uint64_t{1} << (window % 64)) - 1));
  return count;
}

MissingMarks::MissingMarks(std::int64_t windows) : words_(words_for(windows)), windows_(windows) {}

SampleIndex MissingMarks::index() const {
  std::vector<std::uint64_t> words(words_.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = ~words_[i].load(std::memory_order_relaxed);
  if (windows_ % 64 != 0) words.back() &= (std::uint64_t{1} << (windows_ % 64)) - 1;
  return SampleIndex(std::move(words), windows_);
}

}  // namespace batchfs

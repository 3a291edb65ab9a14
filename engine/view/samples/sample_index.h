#pragma once
// Which of a view's windows are samples when those with missing values are skipped: a bit per
// window, and a count per 512 of them, so that the i-th sample is found without going through all.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace batchfs {

/// Immutable, thread-safe.
class SampleIndex {
 public:
  /// Bit i % 64 of word i / 64 is set if window i is a sample. Bits after the last window must be
  /// 0.
  SampleIndex(std::vector<std::uint64_t> words, std::int64_t windows);

  std::int64_t windows() const { return windows_; }
  std::int64_t samples() const { return counts_.back(); }
  /// The window of a sample, 0 <= sample < samples().
  std::int64_t window(std::int64_t sample) const;
  bool contains(std::int64_t window) const {
    return (words_[static_cast<std::size_t>(window / 64)] >> (window % 64) & 1) != 0;
  }
  /// How many samples come before a window, 0 <= window <= windows().
  std::int64_t samples_before(std::int64_t window) const;
  std::span<const std::uint64_t> words() const { return words_; }

 private:
  static constexpr std::size_t kBlock = 8;  // words with a common count
  std::vector<std::uint64_t> words_;
  std::vector<std::int64_t> counts_;  // samples before each block, and all
  std::int64_t windows_;
};

/// Windows that hold a missing value, while they are looked for. mark() may be called from several
/// threads at once; the result does not depend on their order.
class MissingMarks {
 public:
  /// Throws not_supported for more windows than an index is made for.
  explicit MissingMarks(std::int64_t windows);
  void mark(std::int64_t window) {
    words_[static_cast<std::size_t>(window / 64)].fetch_or(std::uint64_t{1} << (window % 64),
                                                           std::memory_order_relaxed);
  }
  /// The windows that were not marked.
  SampleIndex index() const;

 private:
  std::vector<std::atomic<std::uint64_t>> words_;
  std::int64_t windows_;
};

}  // namespace batchfs

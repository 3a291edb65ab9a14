#pragma once
// Maps each position of an epoch to a component of the mixture: arithmetic on a few numbers for
// each component, whatever the number of samples. batchfs-view(5) describes it.

#include <cstdint>
#include <vector>

namespace batchfs {

/// Positions of an epoch come in blocks. Each block has a quota of each component, and is a
/// permutation of these quotas. A component's ordinals count its positions, over all epochs.
/// Immutable, thread-safe.
class MixSchedule {
 public:
  /// The frequency of each component.
  struct Counts {
    /// The share of each component, in each `period` positions. They sum to `period`.
    std::vector<std::int64_t> rates;
    std::int64_t period = 1;
    /// The positions of each component in an epoch. They sum to the positions of an epoch.
    std::vector<std::int64_t> per_epoch;
  };

  /// Quotas are exact in each `block` positions: no component whose share is above 0 may have less
  /// than one of them, unless an epoch is no longer than a block.
  MixSchedule(Counts counts, std::int64_t block, std::uint64_t seed);

  struct Place {
    std::size_t component = 0;
    unsigned __int128 ordinal = 0;
  };
  /// The places of positions [first, first + count) of an epoch; after its end those of its
  /// beginning repeat. Precondition: first >= 0 and epoch >= 0.
  std::vector<Place> places(std::int64_t first, std::int64_t count, std::int64_t epoch) const;

  std::int64_t positions() const { return positions_; }
  std::int64_t block() const { return block_; }
  const Counts& counts() const { return counts_; }

 private:
  /// Positions of the components up to each, the last of them included, among the first `position`.
  std::vector<std::int64_t> sums_before(std::int64_t position) const;

  Counts counts_;
  std::int64_t block_;
  std::uint64_t seed_;
  std::vector<std::int64_t> rate_sums_, epoch_sums_;
  std::int64_t positions_;  // of an epoch
};

/// `total` in parts that are proportional to `shares`: each rounded down, and the rest to those
/// with the largest remainders, the earlier first. Precondition: the shares sum to 1.
std::vector<std::int64_t> largest_remainder(const std::vector<double>& shares, std::int64_t total);

}  // namespace batchfs

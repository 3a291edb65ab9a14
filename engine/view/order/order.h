#pragma once
// The order of samples: pure functions of (seed, epoch, position), in constant memory.
// batchfs-view(5) describes them so that others can reproduce them.

#include <cstdint>
#include <string>
#include <vector>

namespace batchfs {

/// The finaliser of splitmix64 (S. Vigna).
std::uint64_t mix_bits(std::uint64_t x);

/// A pseudo-random permutation of [0, size), chosen by three numbers. A balanced Feistel network of
/// six rounds over the smallest even number of bits that holds `size`, walked until it lands inside
/// (M. Luby, C. Rackoff 1988; J. Black, P. Rogaway 2002, "cycle walking").
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch, std::uint64_t stream = 0);
  std::int64_t operator()(std::int64_t i) const;

 private:
  static constexpr int kRounds = 6;
  std::uint64_t size_;
  int half_bits_;
  std::uint64_t keys_[kRounds];
};

/// Which samples share chunks: along each window dimension, `group` successive positions begin in
/// the same chunk; `lead` positions come before the first whole group. Positions after the last one
/// are a tail. Where restrictions leave out starts, groups differ in length, and each position is
/// in one.
struct ChunkGroups {
  struct Axis {
    std::int64_t positions = 1;
    std::int64_t lead = 0;
    std::int64_t group = 1;
    /// Where each group begins, and the end of the last, where they are not all of `group`
    /// positions; `lead` is then 0.
    std::vector<std::int64_t> bounds = {};

    /// Groups; whole ones where all are equally long.
    std::int64_t whole() const {
      return bounds.empty() ? (positions - lead) / group
                            : static_cast<std::int64_t>(bounds.size()) - 1;
    }
    /// Positions in groups.
    std::int64_t inside() const { return bounds.empty() ? whole() * group : positions; }
    /// Counted from `lead`.
    std::int64_t begin(std::int64_t number) const {
      return bounds.empty() ? number * group : bounds[static_cast<std::size_t>(number)];
    }
    std::int64_t size(std::int64_t number) const {
      return bounds.empty() ? group : begin(number + 1) - begin(number);
    }
    /// The group of a position, which counts from `lead`.
    std::int64_t number(std::int64_t position) const;
  };
  std::vector<Axis> axes;  // slowest first, as samples are numbered

  bool is_uneven() const;
  /// Samples of one group: one per position in it along every axis. Precondition: !is_uneven().
  std::int64_t group_samples() const;
  /// Samples of all groups.
  std::int64_t in_groups() const;
  /// The place of a group's first sample; in_groups() for count().
  std::int64_t begin(std::int64_t group) const;
  /// How many whole groups there are.
  std::int64_t count() const;
  std::int64_t samples() const;
  /// The sample at a place when groups come one after the other, row-major, the samples of each
  /// row-major, and then those of no whole group: first those outside along the first axis, then
  /// outside along the second only, ...
  std::int64_t sample(std::int64_t place) const;
};

/// A seed of its own for each lane.
std::uint64_t lane_seed(std::uint64_t seed, std::int64_t lane);
/// How "home" deals groups to lanes: the same in every epoch.
Permutation home_deal(std::int64_t groups, std::uint64_t seed);

struct Order {
  enum class Shuffle : std::uint8_t { none, global, block } shuffle = Shuffle::none;
  std::uint64_t seed = 0;
  std::int64_t buffer = 1;  // block: groups that are shuffled together
  std::int64_t lanes = 1;   // parts of the order that batches come from in turn, see lanes.h
  bool home = false;        // block: a group is in the same lane in every epoch, see home_order.h
  std::string by = {};      // block: the source whose chunks make the groups; empty: the first

  /// The sample at position i of an epoch, without lanes. Precondition: groups are not uneven;
  /// those have SkippingBlockOrder.
  std::int64_t sample(std::int64_t i, std::int64_t samples, std::int64_t epoch,
                      const ChunkGroups& groups) const;
};

}  // namespace batchfs

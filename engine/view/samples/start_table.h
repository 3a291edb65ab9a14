#pragma once
// Which choices of one start along each of several window dimensions are samples. Starts that the
// samples do not distinguish are one group, so that a table takes memory of what differs only.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/dims.h"

namespace batchfs {

/// Groups of starts, or whatever else is counted: first, first + 1, ..., end - 1.
struct GroupRange {
  std::int64_t first, end;
  bool operator==(const GroupRange&) const = default;
};

/// Immutable, thread-safe.
class StartTable {
 public:
  /// Consecutive starts of one group, by their places in the grid.
  struct Starts {
    std::int64_t first, end;
    std::int64_t group;
  };

  /// Every choice of `lengths` starts along each dimension.
  static StartTable whole(const Dims& lengths);
  /// Bit i % 64 of word i / 64 is set if choice i is a sample, row-major. `owner` keeps the words.
  static StartTable of_bits(const Dims& lengths, std::span<const std::uint64_t> words,
                            std::shared_ptr<const void> owner);
  /// The row-major numbers of the choices, in any order, possibly repeated.
  static StartTable of_numbers(const Dims& lengths, std::vector<std::int64_t> numbers);

  std::size_t dims() const { return axes_.size(); }
  /// Groups along a dimension. Starts that no sample has are in none.
  std::int64_t groups(std::size_t dim) const { return axes_[dim].groups; }
  /// Ascending.
  const std::vector<Starts>& starts(std::size_t dim) const { return axes_[dim].starts; }
  /// Is every start a sample's, and does this dimension not depend on the others?
  bool is_free(std::size_t dim) const {
    const Axis& axis = axes_[dim];
    return axis.groups == 1 && axis.starts.size() == 1 && axis.starts[0].first == 0 &&
           axis.starts[0].end == axis.length;
  }
  /// Is every choice of a group along each dimension a sample?
  bool is_product() const;
  /// Bytes of memory.
  std::uint64_t bytes() const;

  /// The choices along some of the dimensions, each once, in their order, that belong to a sample.
  StartTable along(const std::vector<std::size_t>& dims) const;

  /// Sets the elements of `marks`, row-major over the groups of `ranges` along each dimension, that
  /// are samples to 1. Ranges are ascending and do not touch each other.
  void mark(const std::vector<std::vector<GroupRange>>& ranges, std::uint8_t* marks) const;

 private:
  struct Axis {
    std::int64_t length = 0;  // of the grid
    std::int64_t groups = 0;
    std::vector<Starts> starts;
    std::vector<std::int64_t> places;  // of the first of each group in `bits_`
  };

  explicit StartTable(const Dims& lengths);
  std::vector<Starts> renamed(std::size_t dim,
                              const std::vector<std::pair<std::int64_t, std::int64_t>>& groups);
  void group_bits(std::size_t dim);
  void group_numbers(std::size_t dim);
  bool has_bits_at(std::size_t dim, std::int64_t place) const;
  StartTable bits_along(const std::vector<std::size_t>& dims) const;
  StartTable numbers_along(const std::vector<std::size_t>& dims) const;
  void mark_bits(const std::vector<std::vector<GroupRange>>& ranges, std::size_t dim,
                 std::int64_t place, std::uint8_t*& marks) const;
  using Number = std::vector<std::int64_t>::const_iterator;
  void mark_numbers(const std::vector<std::vector<GroupRange>>& ranges, std::size_t dim,
                    Number begin, Number end, std::int64_t base, std::uint8_t* marks) const;

  std::vector<Axis> axes_;
  /// One of the two. Bits: row-major over `shape_`. Numbers: row-major over groups, ascending.
  bool has_bits_ = false;
  std::span<const std::uint64_t> bits_;
  std::shared_ptr<const void> owner_;
  Dims shape_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace batchfs

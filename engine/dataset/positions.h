#pragma once
// Positions along a dimension.

#include <cstdint>
#include <memory>
#include <vector>

namespace batchfs {

/// Chosen positions along one dimension, in the order they are read. Cheap to copy.
class Positions {
 public:
  /// In a list, of a place that has no position: an array of another store has nothing there.
  static constexpr std::int64_t kNone = -1;

  static Positions range(std::int64_t start, std::int64_t count);
  static Positions list(std::vector<std::int64_t> positions);
  /// One position, or kNone; the dimension is dropped.
  static Positions one(std::int64_t position);

  std::int64_t size() const;
  std::int64_t operator[](std::int64_t i) const;
  bool drops_dim() const { return drops_dim_; }
  /// Positions are start, start + 1, ...
  bool is_range() const { return list_ == nullptr; }
  /// Is one of them kNone?
  bool has_gaps() const { return has_gaps_; }

 private:
  std::int64_t start_ = 0, count_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> list_;  // null: a range
  bool drops_dim_ = false, has_gaps_ = false;
};

}  // namespace batchfs

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
  bool is_range() const { return list_ == nullptr && held_ == count_; }
  /// Is one of them kNone?
  bool has_gaps() const { return has_gaps_; }
  /// All before `first` and from `end` on are kNone.
  struct Held {
    std::int64_t first, end;
  };
  /// Is it a copy of the other one? Equal lists that were made separately are not.
  bool is_same(const Positions& other) const {
    return start_ == other.start_ && count_ == other.count_ && before_ == other.before_ &&
           held_ == other.held_ && list_ == other.list_ && drops_dim_ == other.drops_dim_;
  }
  /// The `count` positions from `first` on. Precondition: first + count <= size().
  Positions slice(std::int64_t first, std::int64_t count) const;
  /// A list of `count`, which has these from `before` on and kNone elsewhere.
  Positions within(std::int64_t before, std::int64_t count) const;
  Held held() const { return {before_, before_ + held_}; }

 private:
  std::int64_t start_ = 0, count_ = 0;
  std::int64_t before_ = 0, held_ = 0;  // leading kNone; positions between the outer kNone
  std::shared_ptr<const std::vector<std::int64_t>> list_;  // null: a range
  bool drops_dim_ = false, has_gaps_ = false;
};

}  // namespace batchfs

#pragma once
// Positions along a dimension.

#include <cstdint>
#include <vector>

namespace batchfs {

/// Chosen positions along one dimension, in the order they are read.
class Positions {
 public:
  static Positions range(std::int64_t start, std::int64_t count);
  static Positions list(std::vector<std::int64_t> positions);
  /// One position; the dimension is dropped.
  static Positions one(std::int64_t position);

  std::int64_t size() const;
  std::int64_t operator[](std::int64_t i) const;
  bool drops_dim() const { return drops_dim_; }
  /// Positions are start, start + 1, ...
  bool is_range() const { return list_.empty(); }

 private:
  std::int64_t start_ = 0, count_ = 0;
  std::vector<std::int64_t> list_;
  bool drops_dim_ = false;
};

}  // namespace batchfs

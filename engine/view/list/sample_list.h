#pragma once
// The samples that a view lists: where the window of each begins, and numbers that go with it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/dims.h"

namespace batchfs {

/// A column of numbers, one for each row: whole numbers, or floats where one of them is not whole.
struct ListColumn {
  std::string name;
  bool whole = true;
  std::vector<std::int64_t> integers;  // one of the two is empty
  std::vector<double> floats;

  std::size_t size() const { return whole ? integers.size() : floats.size(); }
  double number(std::size_t row) const {
    return whole ? static_cast<double>(integers[row]) : floats[row];
  }
  void add(std::int64_t value);
  void add(double value);
};

/// Immutable, thread-safe. 8 bytes for a row, and 8 for each column.
class SampleList {
 public:
  /// `lengths`: positions of the selection along each window dimension. Throws not_supported if
  /// their product is beyond 2^63.
  explicit SampleList(Dims lengths);

  std::int64_t rows() const { return static_cast<std::int64_t>(codes_.size()); }
  /// Where the window of a row begins.
  void starts(std::int64_t row, std::int64_t* out) const {
    std::int64_t code = codes_[static_cast<std::size_t>(row)];
    for (std::size_t w = lengths_.size(); w-- > 0;) {
      out[w] = code % lengths_[w];
      code /= lengths_[w];
    }
  }
  /// Positions of the selection along each window dimension.
  const Dims& lengths() const { return lengths_; }
  /// Null without such a column.
  const ListColumn* column(const std::string& name) const;
  const std::vector<ListColumn>& columns() const { return columns_; }
  const std::string& digest() const { return digest_; }

  // For making it.

  /// Positions that one step along a dimension is apart in a code.
  const Dims& steps() const { return steps_; }
  /// The sum of start times step over the dimensions, per row.
  std::vector<std::int64_t>& codes() { return codes_; }
  std::vector<ListColumn>& columns() { return columns_; }
  void set_digest(std::string digest) { digest_ = std::move(digest); }

 private:
  Dims lengths_, steps_;
  std::vector<std::int64_t> codes_;
  std::vector<ListColumn> columns_;
  std::string digest_;
};

}  // namespace batchfs

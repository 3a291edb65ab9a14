#pragma once
// Looks many labels up in a view's selection of a dimension, each in logarithmic time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"

namespace batchfs {

/// Immutable, thread-safe.
class LabelPositions {
 public:
  /// `nearest`: the nearest label in place of an equal one, at most `tolerance` away: a number, or
  /// a length of time for times; empty: however far. Throws invalid_argument, with `path` in front,
  /// for a tolerance of the other kind.
  LabelPositions(const Dataset& dataset, std::string dim, const Positions& selected, bool nearest,
                 const std::string& tolerance, const std::string& path);
  ~LabelPositions();
  LabelPositions(LabelPositions&&) noexcept;

  /// The position in the selection that a cell names: a label, or "#7". -1: none, and `why` holds
  /// the reason.
  std::int64_t find(std::string_view text, std::string& why) const;

 private:
  struct Index;
  std::int64_t position(std::string_view text, std::string& why) const;

  std::string dim_;
  std::int64_t size_;
  bool nearest_;
  std::unique_ptr<const Index> index_;  // null: the dimension has no labels
};

}  // namespace batchfs

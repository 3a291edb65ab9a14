#pragma once
// Selecting along a dimension by label or by position, as xarray's sel and isel.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/dataset/dataset.h"

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

/// What a user asked for along one dimension, not yet looked up. A scalar is text as typed ("500",
/// "2000-01", "#7") with whether it was a JSON number.
struct Selector {
  enum class Form : std::uint8_t { one, list, range } form = Form::one;
  std::vector<std::string> values;      // one: 1, list: n
  std::optional<std::string> from, to;  // range; open ends are nullopt
  bool wrap = false;                    // range: continues at the beginning of a cyclic coordinate
  std::string with_wrap;                // range: how to write it with `wrap`, for messages
  std::string where;                    // JSON path or option text, for messages
};

/// `time=2000-01-01:2000-01-31`, `level=500,850`, `longitude=350:30:wrap`, `time=#0:#4`: the part
/// after '='. Times contain colons ("2000-01-01T06:00:00:2000-..."): a separating colon is one that
/// leaves two valid labels.
Selector parse_selector(const std::string& text, const std::string& where);
/// A scalar, a list, or {"from", "to", "wrap"}.
Selector parse_selector(const JsonRef& json);

/// Looks a selector up. Labels are inclusive at both ends, partial dates are ranges, positions are
/// half open. A range that goes over the end of a cyclic coordinate (engine/dataset/circle.h) needs
/// `wrap`; other ranges are cut to the coordinate. Throws not_found for an absent label or position
/// (naming the range of the coordinate), invalid_argument for a malformed one or an empty result.
Positions select(const Dataset& dataset, const std::string& dim, const Selector& selector);

}  // namespace batchfs

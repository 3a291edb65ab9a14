#pragma once
// What a user writes to select along a dimension.

#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

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

/// "; a range is {"from": A, "to": B}" for a range that was written as one label in a view; empty
/// for any other text.
std::string meant_range(const std::string& text);

}  // namespace batchfs

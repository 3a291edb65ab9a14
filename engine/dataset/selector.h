#pragma once
// A user's selection along a dimension.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/calendar_fields.h"

namespace batchfs {

/// One label, position or range. A scalar is text as typed ("500", "2000-01", "#7").
struct SelectorPart {
  enum class Form : std::uint8_t { one, nearest, range } form = Form::one;
  std::string value;                     // one, nearest
  std::optional<std::string> tolerance;  // nearest: how far away the label may be, included
  std::optional<std::string> from, to;   // range; open ends are nullopt
  bool wrap = false;                     // range: continues at the beginning of a cyclic coordinate
  std::int64_t step = 1;                 // range: takes every `step`-th position, from the first
  CalendarTest fields;                   // range: only times that pass
  std::string with_wrap;                 // range: how to write it with `wrap`, for messages
};

/// A selection along one dimension, not yet looked up.
struct Selector {
  std::vector<SelectorPart> parts;  // none: the whole dimension
  bool is_list = false;             // keeps the dimension, also with one part
  CalendarTest fields;              // only times that pass, of all parts
  std::string where;                // JSON path or option text, for messages
};

/// `time=2000-01-01:2000-01-31`, `level=500,850`, `longitude=350:30:wrap`, `time=#0:#4:step=2`,
/// `time=2000:2010,2015:2020`, `latitude=51.3:nearest:tolerance=0.2`: the part after '='. Times
/// contain colons ("2000-01-01T06:00:00:2000-..."): a separating colon is one that leaves two valid
/// labels.
Selector parse_selector(const std::string& text, const std::string& where);
/// A scalar, {"from", "to", "wrap", "step", and fields of a calendar}, {"nearest", "tolerance"}, or
/// a list of these.
Selector parse_selector(const JsonRef& json);

/// "; a range is {"from": A, "to": B}" for a range that was written as one label in a view; empty
/// for any other text.
std::string meant_range(const std::string& text);

}  // namespace batchfs

#pragma once
// "variables" of a tensor: names of variables, and objects that define a made channel: {"make":
// "cos_julian_day"}.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/view/made/made_kinds.h"
#include "engine/view/made/value_times.h"

namespace batchfs {

struct MadeSpec {
  const MadeKind* kind = nullptr;
  std::string name;                   // of the channel; by default its kind's
  std::vector<std::string> of;        // variables that it is made of
  double value = 0;                   // of a constant
  std::int64_t mean_nanoseconds = 0;  // the mean over this time before each one; 0: at the time
  TimeChoice time_choice;             // of a channel of time
  ValueTimes times;                   // where its times come from, in a dataset
  bool in_degrees = false;            // latitudes and longitudes that have no units
  std::size_t place = 0;              // in the list of "variables"
  std::string path;                   // in the view's file, for messages

  /// Is the same made, wherever it stands? Precondition: `times` are known of both.
  bool same_channel(const MadeSpec& other) const;
};

struct TensorVariables {
  std::vector<std::string> stored;  // in their order
  std::vector<MadeSpec> made;       // in theirs; `place` is the position among the others
};

/// Throws invalid_argument with the JSON path: an empty list, a name given twice, an unknown
/// channel or key.
TensorVariables parse_tensor_variables(const JsonRef& json);

}  // namespace batchfs

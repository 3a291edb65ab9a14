#pragma once
// The time of a value: the label along a dimension of times; in a forecast, start and lead time
// together.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// The source of a channel's times.
struct ValueTimes {
  std::vector<std::string> dims;  // of times; of starts and of leads; those of `variable`
  std::string variable;           // holds the times; empty: they are the labels of `dims`

  bool operator==(const ValueTimes&) const = default;
};

/// A view's choice for the times of a channel.
struct TimeChoice {
  std::string time;                 // a dimension, or a variable of times; empty: found
  std::optional<std::string> lead;  // the dimension of lead times; empty: none; nullopt: found
  std::string path;                 // of the channel
};

/// `windows`: names of the view's window dimensions. `stored`: the variables that share a tensor
/// with the channel, whose values have these times; a dimension of lead times counts where one of
/// them has it, or where none has the start. Throws invalid_argument or not_found with the path.
ValueTimes value_times(const Dataset& dataset, const TimeChoice& choice,
                       const std::vector<std::string>& windows,
                       const std::vector<const Variable*>& stored);

/// How long one count of a dimension's labels is, where these are lengths of time: timedelta64, or
/// numbers with units as "hours" [ns].
std::optional<std::int64_t> lead_unit(const Dataset& dataset, const std::string& dim);

}  // namespace batchfs

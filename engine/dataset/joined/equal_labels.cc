#include "engine/dataset/joined/equal_labels.h"

#include <cstring>

#include "engine/dataset/joined/join_labels.h"
#include "engine/dataset/labels.h"

namespace batchfs {

bool are_equal_labels(const Dataset::Index& one, const Dataset::Index& other) {
  const auto times = TimeAxis::of(one), other_times = TimeAxis::of(other);
  if (times.has_value() != other_times.has_value()) return false;
  if (times && times->calendar() != other_times->calendar()) return false;
  if (one.values.type == other.values.type && !times)
    return one.values.data.size() == other.values.data.size() &&
           std::memcmp(one.values.data.data(), other.values.data.data(), one.values.data.size()) ==
               0;
  const JoinLabels labels(one), others(other);
  if (labels.form() != others.form()) return false;
  for (std::int64_t i = 0; i < labels.size(); ++i)
    if (labels.is_label(i) != others.is_label(i)) return false;
  return labels.values() == others.values();
}

}  // namespace batchfs

#pragma once
// A list of batch-….json, such as its samples.

#include <cstdint>
#include <functional>
#include <string>

#include "engine/view/describe/json_writer.h"
#include "engine/view/row_range.h"

namespace batchfs {

struct ProvenanceList {
  std::string key;
  bool is_coordinate = false;  // it stands in "coordinates", behind the other lists
  std::int64_t count = 0;      // elements
  /// Writes some of the elements.
  std::function<void(RowRange range, JsonWriter& out)> write;
};

}  // namespace batchfs

#pragma once
// Which windows are samples: the keys "samples" and "reserve" of a view, as written.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/view/duration.h"

namespace batchfs {

struct SampleSpec {
  /// A window whose labels along the dimension are not `step` apart is no sample.
  struct Spacing {
    std::string dim;
    Duration step;
    std::string path;  // in the file, for messages
  };

  std::vector<Spacing> spacing;

  const Spacing* spacing_along(const std::string& dim) const {
    for (const Spacing& each : spacing)
      if (each.dim == dim) return &each;
    return nullptr;
  }
};

/// The value of "samples". Throws invalid_argument with the JSON path.
SampleSpec parse_samples(const JsonRef& json);

}  // namespace batchfs

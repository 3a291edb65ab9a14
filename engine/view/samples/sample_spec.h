#pragma once
// Which windows are samples: the keys "samples" and "reserve" of a view, as written.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/dataset/selector.h"
#include "engine/view/samples/duration.h"
#include "engine/view/samples/mask.h"

namespace batchfs {

/// Offsets along a dimension: numbers of positions, or durations, of which one list is empty.
struct OffsetList {
  std::string dim;
  std::vector<std::int64_t> steps;
  std::vector<Duration> durations;
  std::string path;  // in the file, for messages
};

struct SampleSpec {
  /// A window whose labels along the dimension are not `step` apart is not a sample.
  struct Spacing {
    std::string dim;
    Duration step;
    std::string path;  // in the file, for messages
  };

  /// A window is a sample only if labels along the dimension are like this.
  struct Where {
    std::string dim;
    Selector selector;
    bool footprint = false;  // every label in the footprint; else that of the start
    std::string path;
  };

  std::vector<Spacing> spacing;
  std::vector<Where> where;
  std::optional<MaskSpec> mask;

  const Spacing* spacing_along(const std::string& dim) const {
    for (const Spacing& each : spacing)
      if (each.dim == dim) return &each;
    return nullptr;
  }
};

/// The value of "samples". Throws invalid_argument with the JSON path.
SampleSpec parse_samples(const JsonRef& json);

/// A list of numbers or of durations along `dim`: an element of a tensor's "offsets", or of
/// "reserve". Throws invalid_argument with the JSON path.
OffsetList parse_offsets(const std::string& dim, const JsonRef& json);

}  // namespace batchfs

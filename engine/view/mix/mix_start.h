#pragma once
// "start" of a mixture: which samples of a component another mixture has read before.

#include <cstdint>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

constexpr std::int64_t kMaxMixSamples = INT64_C(1) << 60;

/// Ordinals number the samples of a component in the order in which it is read, over all of its
/// epochs. A mixture may end inside a block, of which it has read any samples: those of its
/// ordinals that it has not read are `left`.
struct MixStart {
  std::int64_t samples = 0;        // the ordinals before this were read
  std::vector<std::int64_t> left;  // but for these: ascending, each below `samples`

  /// The i-th ordinal that was not read. Precondition: i >= 0.
  unsigned __int128 ordinal(unsigned __int128 i) const {
    return i < left.size() ? static_cast<unsigned __int128>(left[static_cast<std::size_t>(i)])
                           : static_cast<unsigned __int128>(samples) + (i - left.size());
  }
  /// A number, or an object where some are left.
  Json json() const;
};

/// Throws invalid_argument with the JSON path.
MixStart parse_mix_start(const JsonRef& json);

}  // namespace batchfs

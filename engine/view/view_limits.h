#pragma once
// Limits of views.

#include <cstdint>
#include <string>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// Positions of a window, a stride or an offset; and of a window over the edge.
inline constexpr std::int64_t kMaxSteps = INT64_C(1) << 40;
inline constexpr std::int64_t kMaxPadded = INT64_C(1) << 31;

/// Throws not_supported for a dimension that is too long to be looked through, with `path` in
/// front.
void check_restricted_length(const Dataset& dataset, const std::string& dim,
                             const std::string& path);

}  // namespace batchfs

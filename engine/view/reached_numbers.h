#pragma once
// The numbers of "normalize" that the samples of a view need.

#include <cstdint>
#include <vector>

#include "engine/view/normalize.h"
#include "engine/view/view.h"

namespace batchfs {

/// Throws as check_normalization(), for variables of the view, by number, and for its made channels
/// that are normalized. Precondition: the samples of the view are known but for missing values.
void check_numbers(const View& view, const NormalizeSpec& spec,
                   const std::vector<std::uint32_t>& variables);

}  // namespace batchfs

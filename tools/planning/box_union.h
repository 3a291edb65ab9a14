#pragma once
// How many elements several overlapping boxes hold together.

#include <optional>
#include <vector>

#include "engine/base/dims.h"

namespace batchfs {

/// The positions along dimension `d` that any of the boxes has.
std::int64_t covered_length(const std::vector<Box>& boxes, std::size_t d);

/// The elements that any of the boxes has, each counted once. nullopt where counting would take
/// more than about a million steps (very many windows that overlap in several dimensions).
std::optional<std::int64_t> covered_elements(const std::vector<Box>& boxes);

}  // namespace batchfs

#pragma once
// An explanation of a batch (batch_explanation.h), for people and for programs.

#include <string>

#include "engine/base/json_text.h"
#include "tools/planning/batch_explanation.h"

namespace batchfs {

/// Chunks that are listed, at most.
inline constexpr std::size_t kListedInText = 40, kListedInJson = 4096;

/// `memory`: of --memory, in bytes.
std::string explanation_text(const View& view, const BatchExplanation& explanation,
                             std::uint64_t memory);
Json explanation_json(const View& view, const BatchExplanation& explanation, std::uint64_t memory);

}  // namespace batchfs

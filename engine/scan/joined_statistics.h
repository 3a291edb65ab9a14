#pragma once
// Which statistics there are of variables that are joined from another source.

#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// Throws not_supported for those of a part of a split that cuts a joined dimension, `cut`.
void check_joined_statistics(const Variable& variable, const std::vector<std::string>& cut);

/// Returns why there are no numbers for each position along `dim`, which may be concatenated, or
/// joined with several positions for each; empty: they exist.
std::string no_numbers_per(const Variable& variable, const std::string& dim);

}  // namespace batchfs

#pragma once
// Which statistics there are of variables that are joined from another source.

#include <string>
#include <vector>

#include "engine/dataset/dataset.h"

namespace batchfs {

/// Throws not_supported for numbers of each position along a concatenated dimension, for those of a
/// part of a split that cuts a joined dimension, `cut`, and for numbers of each position, `per`,
/// along one of which the source has several for each.
void check_joined_statistics(const Variable& variable, const std::vector<std::string>& cut,
                             const std::vector<std::string>& per);

}  // namespace batchfs

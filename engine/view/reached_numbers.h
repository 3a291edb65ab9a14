#pragma once
// The numbers of "normalize" that the samples of a view need.

#include "engine/view/view.h"

namespace batchfs {

/// Throws as check_normalization(), for the variables and the made channels of a view that are
/// normalized. Precondition: the samples of the view are known but for missing values.
void check_numbers(const View& view);

}  // namespace batchfs

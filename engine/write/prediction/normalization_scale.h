#pragma once
// Undoes a view's "normalize" for the values of a variable in a tensor.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/view/view.h"
#include "engine/write/prediction/described_axes.h"
#include "engine/write/prediction/predicted_array.h"

namespace batchfs {

/// Null where the variable is not normalized in the tensor. `axes` are those of the output array.
/// Throws not_supported for a normalization that cannot be undone. Keeps what it needs of `samples`
/// and the view.
std::shared_ptr<const PredictedScale> scale_of(const View& view, std::uint32_t tensor,
                                               const std::string& variable,
                                               const std::vector<DescribedAxis>& axes,
                                               std::shared_ptr<const PredictionSamples> samples);

/// Is the variable normalized in the tensor?
bool is_normalized(const View& view, std::uint32_t tensor, const std::string& variable);

}  // namespace batchfs

#pragma once
// Mixtures: views whose samples are those of other views, each in its own order, in the proportions
// of the file.

#include <memory>
#include <vector>

#include "engine/view/mix/mix_spec.h"
#include "engine/view/view.h"

namespace batchfs {

/// A mixture of views of windows that were parsed with ViewOptions::mixed, one for each of
/// spec.components. Throws invalid_argument with the JSON path, and the first difference where their
/// tensors differ.
std::shared_ptr<const View> make_mixed_view(MixSpec spec,
                                            std::vector<std::shared_ptr<const View>> views);

}  // namespace batchfs

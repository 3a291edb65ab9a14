#pragma once
// The properties that components of a mixture must share, and the mixture's own tensors.

#include <memory>
#include <string>
#include <vector>

#include "engine/dataset/positions.h"
#include "engine/view/view.h"

namespace batchfs {

/// The windows of a mixture. Positions along a window dimension are those of one component after
/// the other, unless all of them select the same labels.
struct MixedWindows {
  /// The amount added to the positions of each component, per window dimension.
  std::vector<std::vector<std::int64_t>> first;
  std::vector<Positions> selected;  // per window dimension
  std::vector<ViewCoordinate> coordinates;
  std::vector<std::string> warnings;
};

/// Throws invalid_argument with the first difference unless each sample of one view fits into a
/// batch with those of another. `names`: of the components.
void check_mixed_tensors(const std::vector<std::shared_ptr<const View>>& views,
                         const std::vector<std::string>& names);

/// Precondition: check_mixed_tensors() has passed.
MixedWindows mix_windows(const std::vector<std::shared_ptr<const View>>& views,
                         const std::vector<std::string>& names);

}  // namespace batchfs

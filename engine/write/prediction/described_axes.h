#pragma once
// The axes of an output array, from a dimension of a tensor.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/view.h"
#include "engine/write/prediction/axis_labels.h"
#include "engine/write/prediction/predicted_array.h"

namespace batchfs {

/// An axis, and which positions of the view's selection it has.
struct DescribedAxis {
  PredictedAxis axis;
  std::string dim;  // the selection's
  int order = 0;    // as PredictedArray::order
  int window = -1;  // that `steps` are counted from the start of; -1: from the first position
  /// Steps of the selection, for each position that a sample has along the axis.
  std::vector<std::int64_t> steps = {};
};

/// Makes axes of one view. Refers to it.
class AxisDescriber {
 public:
  AxisDescriber(const View& view, const PredictionSamples& samples);

  /// Does a window move along the dimension? Its number, or -1.
  int window_of(const std::string& dim) const;

  /// A dimension that no window moves along, `length` positions of `tensor`. Throws not_supported
  /// where the view selects other positions.
  DescribedAxis whole(const std::string& dim, std::int64_t length, const std::string& tensor) const;
  /// The positions of windows. `offsets` as the schema has them: numbers, or durations as text.
  /// Throws not_supported for those that are not the same number of positions everywhere.
  DescribedAxis windowed(const std::string& dim, const Json& offsets, std::int64_t length,
                         const std::string& tensor) const;
  /// A position for each start of a window.
  DescribedAxis by_start(const std::string& name, const std::string& dim) const;
  /// The positions within a window as time since its start, for the result of windowed().
  DescribedAxis lead(const DescribedAxis& windowed) const;

  /// The dimension of times that windows move along. Throws invalid_argument without one.
  std::string time_dim() const;

 private:
  const ViewCoordinate* coordinate(const std::string& dim) const;
  std::shared_ptr<const CoordinateLabels> labels(const std::string& dim) const;
  std::optional<std::int64_t> spacing(const std::string& dim) const;
  std::int64_t positions_of(const Json& offset, const std::string& dim) const;

  const View& view_;
  const PredictionSamples& samples_;
  const Json resolved_;
};

}  // namespace batchfs

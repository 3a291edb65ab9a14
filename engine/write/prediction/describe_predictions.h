#pragma once
// The output of a view's predictions: an array for each variable of the tensors that are predicted,
// with the dimensions, labels and attributes of the view's selection.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/view/view.h"
#include "engine/write/prediction/epoch_samples.h"
#include "engine/write/prediction/predicted_array.h"

namespace batchfs {

/// Keyword names in messages are those of batchfs.create, and of batchfs_writer_options.
struct DescriptionOptions {
  std::vector<std::string> tensors;          // empty: the only one, or "y", or all
  std::optional<std::string> name;           // of the only array
  std::map<std::string, std::string> names;  // of arrays, by variable; others: as the variable
  /// Dimensions init_time and lead_time in place of time.
  bool lead_time = false;
  /// A prediction is one number for each sample, at the start of its window.
  bool reduce = false;
  std::optional<DataType> type;  // of the arrays; nothing: the tensor's
  bool denormalize = false;      // undo the view's "normalize"
  std::int64_t epoch = 0;
};

struct PredictionDescription {
  std::vector<PredictedArray> arrays;
  EpochSamples epoch;
};

/// Throws invalid_argument, naming the option; not_supported for views and tensors whose values
/// have no place in an array. Precondition: !view.needs_scan().
PredictionDescription describe_predictions(const View& view, const DescriptionOptions& options);

}  // namespace batchfs

#pragma once
// The samples of an epoch of a view: their windows, and the batches that they are in.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/view/view.h"
#include "engine/write/prediction/predicted_array.h"

namespace batchfs {

struct EpochSamples {
  PredictionSamples samples;
  /// In the epoch's order: the global number of the batch, and the row in `samples`.
  std::vector<std::int64_t> batches;
  std::vector<std::size_t> rows;
};

/// Precondition: a view of windows, !needs_scan().
EpochSamples samples_of_epoch(const View& view, std::int64_t epoch);

/// The starts along a window's dimension, ascending, each once.
std::vector<std::int64_t> starts_along(const PredictionSamples& samples, int dim);

/// The batches with samples that are not done, ascending. `done` has an entry for each row of
/// `samples`.
std::vector<std::int64_t> batches_to_do(const EpochSamples& epoch, const std::vector<bool>& done);

}  // namespace batchfs

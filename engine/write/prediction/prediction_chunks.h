#pragma once
// The chunks and shards of an output for predictions.

#include "engine/write/output_array.h"
#include "engine/write/prediction/predicted_array.h"
#include "engine/write/prediction/prediction_writer.h"

namespace batchfs {

/// By default a chunk has one position of what windows of one position move along, and of other
/// dimensions as much as makes 4 MiB, the first halved first. Throws invalid_argument for lengths
/// that make no sense and for names that are no axis of the array.
OutputChunks prediction_chunks(const PredictedArray& array, const PredictionOptions& options);

}  // namespace batchfs

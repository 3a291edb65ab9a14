#pragma once
// The chunks and shards of an output for predictions.

#include "engine/write/output_array.h"
#include "engine/write/prediction/predicted_array.h"
#include "engine/write/prediction/prediction_writer.h"

namespace batchfs {

/// By default a chunk has one position along dimensions that windows of one position move along,
/// and along other dimensions as much as makes 4 MiB, the first halved first. Throws
/// invalid_argument for invalid lengths and for names that are not axes of the array.
OutputChunks prediction_chunks(const PredictedArray& array, const PredictionOptions& options);

}  // namespace batchfs

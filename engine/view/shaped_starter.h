#pragma once
// A first view of a dataset in the shape of a task: patches of fields, steps of time in, steps out.

#include <cstdint>
#include <string>

#include "engine/dataset/dataset.h"
#include "engine/view/starter.h"

namespace batchfs {

/// 0: not requested.
struct StarterShape {
  std::int64_t patch = 0;    // positions along each of the last two dimensions
  bool chunk_patch = false;  // the size of a chunk there
  std::int64_t time = 0;     // steps of a sample
  std::int64_t predict = 0;  // steps after these, as a tensor of their own
};

/// The starter view, with a window of such patches, and tensors "x" and "y" for `predict`: of every
/// variable that has these dimensions. Fewer samples where a batch would take more than
/// `max_batch_bytes`. Throws invalid_argument where the dataset is too small for the shape.
StarterView shaped_starter_view(const Dataset& dataset, const std::string& name,
                                const StarterShape& shape,
                                std::uint64_t max_batch_bytes = 256 << 20);

}  // namespace batchfs

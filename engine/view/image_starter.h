#pragma once
// A first view of a level of an image: tiles over the space axes, all channels in each.

#include <cstdint>
#include <string>

#include "engine/dataset/dataset.h"
#include "engine/view/starter.h"

namespace batchfs {

/// Starts a view of the variable `name_of_image`, whose axes are known. Tiles have the size of a
/// chunk, at most 256 along an axis of space and one position along time; halved where a sample
/// would take more than `max_batch_bytes`. Batches of 32, or fewer where these would take more.
/// Throws not_found where the variable cannot be in a tensor.
StarterView image_starter_view(const Dataset& dataset, const std::string& name_of_image,
                               std::int64_t level, const std::string& name,
                               std::uint64_t max_batch_bytes = 256 << 20);

}  // namespace batchfs

#pragma once
// How well an order mixes: a figure between 0 and 1 to choose an order by.
//
// Two samples of a batch lie apart, along each dimension of the window, by some number of
// positions. The figure is their mean distance divided by that of any two samples of the epoch; of
// the dimensions, the one where it is least counts. A uniform shuffle gives 1 whatever the data;
// batches of neighbours give nearly 0; runs of k groups of samples that share chunks give about 1 -
// 1/k. It asks only for distances, so it holds for every batch size, and unlike the number of
// distinct chunks in a batch it sees neighbours that lie in different chunks.

#include <optional>

#include "engine/view/view.h"

namespace batchfs {

/// From about 32768 samples, in batches spread over the epoch, of shuffles over several epochs;
/// without a shuffle, exact where an epoch has no more. Batches of one sample are taken in pairs.
/// Nothing for views that have one sample or no order of their own.
/// `world`: of steps, to which as many ranks bring a batch each, rather than of batches.
std::optional<double> shuffle_quality(const View& view, std::int64_t world = 1);

}  // namespace batchfs

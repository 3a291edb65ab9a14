#pragma once
// An object's values from the values of its samples.

#include <cstdint>
#include <functional>
#include <map>

#include "engine/base/buffer.h"
#include "engine/write/prediction/placement.h"

namespace batchfs {

/// By the sample's number: its values in the object's boxes, one box after the other.
using ObjectSamples = std::map<std::int64_t, Buffer>;

/// The object's elements, clipped at the array's end, in C order. Samples are added in the order of
/// their numbers: the result does not depend on the order of writing. `starts_of` returns the
/// starts of a sample. Precondition: each sample's buffer has the size of its boxes.
Buffer fold_samples(const Placement& placement, std::int64_t number, const ObjectSamples& samples,
                    const std::function<const std::int64_t*(std::int64_t sample)>& starts_of,
                    Overlap overlap);

}  // namespace batchfs

#pragma once
// schema.json: the contents of a view's batches, for readers that do not open the store.

#include <cstdint>

#include "engine/base/json.h"
#include "engine/view/tensors/tensor_set.h"
#include "engine/view/view.h"

namespace batchfs {

/// Returns the object of schema.json. See "FILES" in batchfs-view(5).
Json view_schema(const View& view);

/// The attributes of a tensor: those that all its variables share. For normalized values the units
/// are called "original_units".
Json attributes_of(const TensorSet& set, std::uint32_t tensor);

}  // namespace batchfs

#pragma once
// Do two stores have the same labels along a dimension?

#include "engine/dataset/dataset.h"

namespace batchfs {

/// The same values in the same order. Times of different units are equal if their instants and
/// calendars are. Throws not_supported for labels that cannot be compared.
bool are_equal_labels(const Dataset::Index& one, const Dataset::Index& other);

}  // namespace batchfs

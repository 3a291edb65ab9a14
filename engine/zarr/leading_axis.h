#pragma once
// An array seen with one more dimension of length 1 in front: a member of an ensemble, of which
// each store holds one.

#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// The same stored bytes under the same keys, and the same document: only shape, chunks and the
/// codecs' lists of dimensions have one more entry. Throws not_supported for an array that has the
/// most dimensions already.
ArrayMetadata add_leading_axis(const ArrayMetadata& array);

}  // namespace batchfs

#pragma once
// Common parts of the v2 and v3 metadata parsers.

#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// A list of lengths, each at least `least`. Throws for more than kMaxArrayDims.
Dims parse_dims(const JsonRef& list, std::int64_t least);

/// "." or "/".
char parse_separator(const JsonRef& json);

/// Throws for shapes and chunks that cannot be: different ranks, chunks or arrays too large to
/// address.
void check_sizes(const ArrayMetadata& array);

/// Throws not_supported for a chain of more codecs than kMaxCodecs.
void check_codec_count(std::size_t count);

}  // namespace batchfs

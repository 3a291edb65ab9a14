#pragma once
// The file formats that stored chunks look like, for messages about damaged ones.

#include <vector>

#include "engine/store/decompression.h"
#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// The compression that stored bytes begin with because a codec of the chunk makes such data, also
/// within shards: no sign that anything else compressed the object. `codecs` in encode order.
FileCompression looks_like(const std::vector<CodecSpec>& codecs);

}  // namespace batchfs

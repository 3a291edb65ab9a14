#pragma once
// The codecs of an array in a few words, for people.

#include <string>
#include <vector>

#include "engine/zarr/array_metadata.h"

namespace batchfs {

/// "blosc(lz4)", "sharding(zstd)", "zlib", "none"; codecs that only state the byte order are left
/// out. Safe to show, see printable().
std::string codecs_text(const std::vector<CodecSpec>& codecs);

}  // namespace batchfs

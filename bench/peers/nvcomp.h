#pragma once
// nvCOMP's batched LZ4 and Zstandard decoders, which decode on the GPU streams that have been
// extracted from their containers.
//
// nvCOMP does not support Blosc containers. The work around the streams is done here in its favour:
// the streams of a Blosc container are found before the measurement and lie aligned in pinned
// memory, streams that Blosc stored are read in place, and batchfs's kernel puts the planes back
// into items.
//
// The library is loaded on first use; bench/dependencies installs it.

#include <string>

#include "bench/gpu_chunks.h"

namespace batchfs::bench {

/// Why nvCOMP is not available; empty if it is.
std::string why_no_nvcomp();
/// `chunks` may go.
Decoder nvcomp_decoder(const Chunks& chunks);

}  // namespace batchfs::bench

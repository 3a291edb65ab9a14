#pragma once
// Chunks decoded by the CPU libraries (libblosc, libzstd, liblz4) into pinned memory, a thread for
// each core, and each copied to the GPU when it is there.

#include "bench/gpu_chunks.h"

namespace batchfs::bench {

/// `chunks` must outlive it.
Decoder cpu_decoder(const Chunks& chunks);

}  // namespace batchfs::bench

#pragma once
// Decodes chunks with the CPU libraries (libblosc, libzstd, liblz4) into pinned memory, one thread
// per core, and copies each chunk to the GPU when it is complete.

#include "bench/gpu_chunks.h"

namespace batchfs::bench {

/// `chunks` must outlive it.
Decoder cpu_decoder(const Chunks& chunks);

}  // namespace batchfs::bench

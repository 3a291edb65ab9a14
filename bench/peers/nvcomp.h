#pragma once
// nvCOMP's batched LZ4 and Zstandard decoders, which decode on the GPU what has been taken out of
// its containers.
//
// nvCOMP knows no Blosc. What a program has to do around it is done here in its favour: the streams
// of a Blosc container are found before anything is timed and lie aligned in pinned memory, streams
// that Blosc stored are read where they lie, and batchfs's kernel puts the planes back into items.
//
// Its library is loaded when it is first used; bench/dependencies says where it comes from.

#include <string>

#include "bench/gpu_chunks.h"

namespace batchfs::bench {

/// Why there is no nvCOMP; empty when there is.
std::string why_no_nvcomp();
/// `chunks` may go.
Decoder nvcomp_decoder(const Chunks& chunks);

}  // namespace batchfs::bench

#pragma once
// Starts the kernels of each stage on a stream. For .cu files; after the last one,
// cudaGetLastError() reports errors.

#include <cuda_runtime.h>

#include <cstdint>
#include <span>

#include "gpu/kernels/assembly.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// The longest streams first, as DecodePlan::finish() sorts them. The rows are the host's copy of
/// the work's.
void launch_lz4(const Work& work, std::span<const Lz4Stream> streams, cudaStream_t stream);
void launch_deflate(const Work& work, std::size_t streams, cudaStream_t stream);
void launch_zstd_entropy(const Work& work, std::size_t blocks, cudaStream_t stream);
void launch_zstd_frames(const Work& work, std::span<const ZstdFrame> frames, cudaStream_t stream);
void launch_unshuffle(const Work& work, std::size_t rows, std::uint32_t longest,
                      cudaStream_t stream);
/// `slices` of all rows together.
void launch_gather(const AssemblyWork& work, std::uint32_t slices, cudaStream_t stream);

}  // namespace batchfs::gpu

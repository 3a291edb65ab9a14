// The kernels: each is a function of a .cuh file, on a grid.

#include "gpu/kernels/kernels.h"

#include <algorithm>

#include "gpu/kernels/assembly.cuh"
#include "gpu/kernels/deflate.cuh"
#include "gpu/kernels/lz4.cuh"
#include "gpu/kernels/unshuffle.cuh"
#include "gpu/kernels/zstd.cuh"

namespace batchfs::gpu {

namespace {

constexpr int kGatherThreads = 256;
// Short LZ4 streams (Blosc's splits) fill the device by their number; a long one is a whole chunk.
constexpr int kShortLz4Threads = 256, kLongLz4Threads = 512, kLz4Tile = 8192;
// Streams come one per chunk, and a thread's share of a window has to be longer than codes need to
// fall into step.
constexpr int kDeflateThreads = 512, kDeflateTile = 8192;
// Frames come one per chunk and are long: all threads that a block can have, so that one frame is
// fast.
constexpr int kFrameThreads = 1024, kFrameTile = 8192;
// Many short frames (Blosc's blocks) fill the device by their number.
constexpr int kShortThreads = 512, kShortTile = 8192;
constexpr int kUnshuffleThreads = 256;

// Threads that a multiprocessor holds, at most 1,536 of which are asked for (CUDA C++ Programming
// Guide, "Technical Specifications per Compute Capability"): Turing holds 1,024.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kResidentThreads = 1024;
#else
constexpr int kResidentThreads = 1536;
#endif

template <int kThreads>
__global__ void __launch_bounds__(kThreads, kResidentThreads / kThreads)
    lz4_kernel(Work work, std::uint32_t first) {
  __shared__ Lz4Shared<kThreads, kLz4Tile> shared;
  lz4_stream(shared, work, first + blockIdx.x);
}

__global__ void __launch_bounds__(kDeflateThreads, kResidentThreads / kDeflateThreads >= 2 ? 2 : 1)
    deflate_kernel(Work work) {
  __shared__ DeflateShared<kDeflateThreads, kDeflateTile> shared;
  static_assert(sizeof shared <= 48 * 1024);  // that a kernel may have on every device
  deflate_stream(shared, work, blockIdx.x);
}

// Starts the sequences first, which take longer: the literals, in a kernel of their own, would have
// the device to themselves and leave most of it idle. Four blocks per multiprocessor, the maximum
// for its shared memory.
__global__ void __launch_bounds__(kEntropyThreads, 4)
    zstd_entropy_kernel(Work work, std::uint32_t blocks) {
  __shared__ ZstdEntropyShared shared;
  const std::uint32_t groups = sequence_groups(blocks);
  if (blockIdx.x < groups)
    zstd_sequences(shared.sequences, work, blockIdx.x, blocks);
  else
    zstd_literals(shared.huffman, work, blockIdx.x - groups);
}

template <int kThreads, int kTile>
__global__ void __launch_bounds__(kThreads) zstd_frame_kernel(Work work) {
  __shared__ CopyShared<kThreads, kTile> shared;
  zstd_frame(shared, work, blockIdx.x);
}

__global__ void __launch_bounds__(kLanes) zstd_checksum_kernel(Work work) {
  zstd_checksum(work, blockIdx.x);
}

__global__ void __launch_bounds__(kUnshuffleThreads) unshuffle_kernel(Work work) {
  unshuffle_slice<kUnshuffleThreads>(work, blockIdx.x, blockIdx.y);
}

__global__ void __launch_bounds__(kGatherThreads) gather_kernel(AssemblyWork work) {
  gather_slice<kGatherThreads>(work, blockIdx.x);
}

}  // namespace

void launch_lz4(const Work& work, std::span<const Lz4Stream> streams, cudaStream_t stream) {
  std::uint32_t long_ones = 0;  // the first: the plan is sorted
  while (long_ones < streams.size() && streams[long_ones].source_size > kLongLz4Stream) ++long_ones;
  const auto short_ones = static_cast<std::uint32_t>(streams.size()) - long_ones;
  if (long_ones > 0)
    lz4_kernel<kLongLz4Threads><<<long_ones, kLongLz4Threads, 0, stream>>>(work, 0);
  if (short_ones > 0)
    lz4_kernel<kShortLz4Threads><<<short_ones, kShortLz4Threads, 0, stream>>>(work, long_ones);
}

void launch_deflate(const Work& work, std::size_t streams, cudaStream_t stream) {
  if (streams > 0)
    deflate_kernel<<<static_cast<unsigned>(streams), kDeflateThreads, 0, stream>>>(work);
}

void launch_zstd_entropy(const Work& work, std::size_t blocks, cudaStream_t stream) {
  const auto count = static_cast<std::uint32_t>(blocks);
  if (count > 0)
    zstd_entropy_kernel<<<sequence_groups(count) + count, kEntropyThreads, 0, stream>>>(work,
                                                                                        count);
}

void launch_zstd_frames(const Work& work, std::span<const ZstdFrame> frames, cudaStream_t stream) {
  if (frames.empty()) return;
  std::uint32_t longest = 0;
  bool checksums = false;
  for (const ZstdFrame& frame : frames) {
    longest = std::max(longest, frame.size);
    checksums = checksums || frame.has_checksum;
  }
  const auto count = static_cast<std::uint32_t>(frames.size());
  if (longest > 4 * kZstdBlockSize)
    zstd_frame_kernel<kFrameThreads, kFrameTile><<<count, kFrameThreads, 0, stream>>>(work);
  else
    zstd_frame_kernel<kShortThreads, kShortTile><<<count, kShortThreads, 0, stream>>>(work);
  if (checksums) zstd_checksum_kernel<<<count, kLanes, 0, stream>>>(work);
}

void launch_unshuffle(const Work& work, std::size_t rows, std::uint32_t longest,
                      cudaStream_t stream) {
  if (rows == 0) return;
  const dim3 grid(static_cast<unsigned>(rows), std::min(slices(longest), 65535u));
  unshuffle_kernel<<<grid, kUnshuffleThreads, 0, stream>>>(work);
}

void launch_gather(const AssemblyWork& work, std::uint32_t slices_in_all, cudaStream_t stream) {
  if (slices_in_all > 0) gather_kernel<<<slices_in_all, kGatherThreads, 0, stream>>>(work);
}

}  // namespace batchfs::gpu

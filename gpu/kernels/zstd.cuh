#pragma once
// Zstandard frames (RFC 8878), in three kernels over the tables that zstd_plan.cc wrote.
//
// Parallelism: first all blocks of all frames (zstd_literals: one block of threads decodes a
// block's literals; zstd_sequences: another turns the sequences of several into runs; the tables of
// earlier blocks that a block repeats are built again from their descriptions, so that no block
// waits for another); then within each frame every byte of a tile (zstd_frame: copy.cuh executes
// the matches of a frame's blocks in order; the repeated offsets of each block are known once those
// of the previous one are); then the checksums, if any. The serial part of a frame is one chain of
// states per block, and all chains run at the same time. Decoders with a warp or block of threads
// per frame have one chain per frame, which bounds them.

#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/huffman.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/sequences.cuh"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// A warp for each stream of literals; or one for each chain of states, and one that follows them.
inline constexpr int kEntropyThreads = (1 + kChains) * kLanes;
static_assert(kEntropyThreads >= 4 * kLanes);

union ZstdEntropyShared {
  SequencesShared sequences;
  HuffmanShared huffman;
};

/// Decodes the literals of a block into the literals area, by the warps of a block of threads.
BATCHFS_GPU bool decode_literals(HuffmanShared& shared, const Work& work, const ZstdBlock& block) {
  if (block.literal_kind == LiteralKind::raw) return true;
  std::uint8_t* out = work.literals + block.literals;
  const std::uint8_t* bytes = work.source + block.literal_source;
  if (block.literal_kind == LiteralKind::rle) {
    each_thread<kEntropyThreads>([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < block.literal_size;
           i += kEntropyThreads)
        out[i] = bytes[0];
    });
    return true;
  }
  each_warp<kEntropyThreads>([&](int warp) {
    if (warp != 0) return;
    const ZstdBlock& with_tree = work.zstd_blocks[block.tree];
    const std::uint32_t tree =
        read_tree(work.source + with_tree.literal_source,
                  static_cast<std::uint32_t>(with_tree.literal_source_size), shared);
    each_lane([&](int lane) {
      if (lane == 0) shared.tree_size = tree;
    });
  });
  if (shared.tree_size == 0) return false;
  const std::uint32_t skip = block.literal_tree ? shared.tree_size : 0;
  bytes += skip;
  const std::uint32_t size = static_cast<std::uint32_t>(block.literal_source_size) - skip;
  return !any_warp<kEntropyThreads>([&](int warp) {
    if (warp >= block.literal_streams) return false;
    const LiteralStream stream = find_stream(bytes, size, block.literal_size, block.literal_streams,
                                             static_cast<std::uint32_t>(warp));
    return !stream.good || !decode_stream(shared, bytes + stream.begin, stream.size,
                                          out + stream.first, stream.symbols);
  });
}

/// The work of one block of threads: the sequences of the blocks `group` * kChains and on, of
/// `blocks` in all.
BATCHFS_GPU void zstd_sequences(SequencesShared& shared, const Work& work, std::uint32_t group,
                                std::uint32_t blocks) {
  decode_sequences<kEntropyThreads>(shared, work, group * kChains, blocks);
}

/// The number of such groups.
constexpr std::uint32_t sequence_groups(std::uint32_t blocks) {
  return (blocks + kChains - 1) / kChains;
}

/// The work of one block of threads: the literals of block `number`.
BATCHFS_GPU void zstd_literals(HuffmanShared& shared, const Work& work, std::uint32_t number) {
  const ZstdBlock& block = work.zstd_blocks[number];
  if (block.kind != ZstdBlockKind::compressed) return;
  const bool good = decode_literals(shared, work, block);
  each_thread<kEntropyThreads>([&](int thread) {
    if (thread == 0 && !good) raise_to(work.status + block.chunk, kDamaged);
  });
}

/// The work of one block of threads: the output of frame `number`.
template <int kThreads, int kTile>
BATCHFS_GPU void zstd_frame(CopyShared<kThreads, kTile>& shared, const Work& work,
                            std::uint32_t number) {
  const ZstdFrame& frame = work.zstd_frames[number];
  // Another frame of the chunk may be found damaged right now: all threads must see the same value.
  Threads<bool, kThreads> damaged;
  each_thread<kThreads>(
      [&](int thread) { damaged[thread] = work.status[frame.chunk] != kDecoded; });
  if (any_thread<kThreads>(damaged)) return;

  std::uint8_t* out =
      (frame.target.area == Area::planes ? work.planes : work.target) + frame.target.offset;
  std::uint32_t done = 0;
  Repeats repeats = first_repeats();
  bool good = true;
  for (std::uint32_t i = frame.first_block; good && i < frame.first_block + frame.blocks; ++i) {
    const ZstdBlock& block = work.zstd_blocks[i];
    const ZstdBlockResult& result = work.zstd_results[i];
    const std::uint32_t size = block.kind == ZstdBlockKind::compressed ? result.size : block.size;
    good = size <= frame.size - done;
    if (!good) break;
    if (block.kind == ZstdBlockKind::raw) {
      copy_stretch<kThreads>(work.source + block.source, out + done, 0, size);
    } else if (block.kind == ZstdBlockKind::rle) {
      const std::uint8_t value = work.source[block.source];
      each_thread<kThreads>([&](int thread) {
        for (auto k = static_cast<std::uint32_t>(thread); k < size; k += kThreads)
          out[done + k] = value;
      });
    } else {
      const std::uint8_t* literals =
          (block.literal_kind == LiteralKind::raw ? work.source : work.literals) + block.literals;
      const Runs runs{work.runs + block.runs,
                      result.runs,
                      work.run_index + block.run_index,
                      literals,
                      size,
                      repeats};
      good = copy_runs<kThreads>(shared, runs, out + done, done);
      repeats =
          composed(Repeats{{result.repeats[0], result.repeats[1], result.repeats[2]}}, repeats);
    }
    done += size;
  }
  good = good && done == frame.size;
  each_thread<kThreads>([&](int thread) {
    if (thread == 0 && !good) raise_to(work.status + frame.chunk, kDamaged);
  });
}

inline constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87u, kPrime2 = 0xc2b2ae3d27d4eb4fu,
                               kPrime3 = 0x165667b19e3779f9u, kPrime4 = 0x85ebca77c2b2ae63u,
                               kPrime5 = 0x27d4eb2f165667c5u;

BATCHFS_GPU std::uint64_t rotated(std::uint64_t value, int by) {
  return value << by | value >> (64 - by);
}
BATCHFS_GPU std::uint64_t mixed(std::uint64_t sum, std::uint64_t input) {
  return rotated(sum + input * kPrime2, 31) * kPrime1;
}

/// XXH64 of bytes[0, size) with seed 0, by a warp: its four sums are in four lanes.
BATCHFS_GPU std::uint64_t xxh64(const std::uint8_t* bytes, std::uint32_t size) {
  Lanes<std::uint64_t> sums;
  each_lane([&](int lane) {
    sums[lane] = lane == 0 ? kPrime1 + kPrime2 : lane == 1 ? kPrime2 : lane == 2 ? 0 : 0 - kPrime1;
    if (lane < 4)
      for (std::uint32_t at = 8 * static_cast<std::uint32_t>(lane);
           at + 32 - 8 * static_cast<std::uint32_t>(lane) <= size; at += 32)
        sums[lane] = mixed(sums[lane], load_u64(bytes + at));
  });
  std::uint64_t hash = kPrime5;
  if (size >= 32) {
    std::uint64_t sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = value_of(sums, i);
    hash = rotated(sum[0], 1) + rotated(sum[1], 7) + rotated(sum[2], 12) + rotated(sum[3], 18);
    for (int i = 0; i < 4; ++i) hash = (hash ^ mixed(0, sum[i])) * kPrime1 + kPrime4;
  }
  hash += size;
  std::uint32_t at = size / 32 * 32;
  for (; size - at >= 8; at += 8)
    hash = rotated(hash ^ mixed(0, load_u64(bytes + at)), 27) * kPrime1 + kPrime4;
  if (size - at >= 4) {
    hash = rotated(hash ^ load_u32(bytes + at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < size; ++at) hash = rotated(hash ^ bytes[at] * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

/// The work of one warp: checks the content of frame `number`, where it has a checksum.
BATCHFS_GPU void zstd_checksum(const Work& work, std::uint32_t number) {
  const ZstdFrame& frame = work.zstd_frames[number];
  if (!frame.has_checksum) return;
  const std::uint8_t* content =
      (frame.target.area == Area::planes ? work.planes : work.target) + frame.target.offset;
  const bool good = static_cast<std::uint32_t>(xxh64(content, frame.size)) == frame.checksum;
  each_lane([&](int lane) {
    if (lane == 0 && !good) raise_to(work.status + frame.chunk, kDamaged);
  });
}

}  // namespace batchfs::gpu

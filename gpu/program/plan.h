#pragma once
// Plans the GPU's work for a batch of encoded chunks: the host reads the headers, checks every
// length and offset in them, and writes the work tables (tables.h); the kernels then touch only
// data.
//
//   DecodePlan plan;
//   if (plan.add_blosc(chunk, source, target, size) != Verdict::planned) …decode it on the CPU…
//   plan.finish();
//
// Headers are a few bytes for each block of 128 KiB or more, so one host thread plans hundreds of
// GB/s, and all memory is known before a launch: nothing is allocated on the device.
//
// `chunk` is the encoded bytes as the host sees them; `source` is where the same bytes lie in the
// source area, `target` where `size` decoded bytes go in the target area. A chunk that is not
// planned leaves no trace. `unsupported` is a valid chunk, or one that may be, that the GPU does
// not decode; `damaged` is one that no decoder should accept; either way the CPU's decoder has the
// last word.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

enum class Verdict { planned, unsupported, damaged };

class DecodePlan {
 public:
  using Bytes = std::span<const std::byte>;

  /// One Blosc 1 container.
  Verdict add_blosc(Bytes chunk, std::uint64_t source, std::uint64_t target, std::uint64_t size);
  // For the following, `item` > 1 means that the decoded bytes are shuffled by numcodecs' Shuffle.

  /// One or more Zstandard frames.
  Verdict add_zstd(Bytes chunk, std::uint64_t source, std::uint64_t target, std::uint64_t size,
                   std::uint32_t item = 1);
  /// numcodecs' LZ4: the decoded size as a little-endian u32, then one block.
  Verdict add_lz4(Bytes chunk, std::uint64_t source, std::uint64_t target, std::uint64_t size,
                  std::uint32_t item = 1);
  /// A stream of deflate in zlib's format, or one or more members of gzip.
  Verdict add_deflate(Bytes chunk, DeflateFormat format, std::uint64_t source, std::uint64_t target,
                      std::uint64_t size, std::uint32_t item = 1);
  /// Bytes that are not compressed.
  Verdict add_raw(Bytes chunk, std::uint64_t source, std::uint64_t target, std::uint64_t size,
                  std::uint32_t item);

  /// Puts the longest streams first, so that the last ones to start are short. Call once, after the
  /// last add.
  void finish();
  void clear();

  std::uint32_t chunks() const { return chunks_; }

  std::vector<Lz4Stream> lz4_streams;
  std::vector<DeflateStream> deflate_streams;
  std::vector<ZstdBlock> zstd_blocks;
  std::vector<ZstdFrame> zstd_frames;
  std::vector<Unshuffle> unshuffles;
  std::vector<Place> plane_places;
  /// How much of each area the work needs: bytes of planes and literals, entries of runs and run
  /// index.
  std::uint64_t planes = 0, literals = 0, runs = 0, run_index = 0;
  /// Bytes of the longest unshuffled stretch: the grid's width.
  std::uint32_t longest_unshuffle = 0;

 private:
  struct Mark;

  Mark mark() const;
  Verdict planned(Verdict verdict, const Mark& before);

  Verdict blosc(Bytes chunk, std::uint64_t source, std::uint64_t target, std::uint64_t size);
  Verdict zstd(Bytes chunk, std::uint64_t source, Place target, std::uint64_t size);
  Verdict lz4_stream(std::uint64_t source, std::uint64_t source_size, Place target,
                     std::uint64_t size);
  Verdict deflate_stream(std::uint64_t source, std::uint64_t source_size, DeflateFormat format,
                         Place target, std::uint64_t size);
  void unshuffle(Unshuffle row);
  bool can_unshuffle(std::uint64_t size, std::uint32_t item) const;
  void unshuffle(Place from, std::uint64_t target, std::uint64_t size, std::uint32_t item);
  Place shuffled_target(std::uint64_t target, std::uint64_t size, std::uint32_t item);
  Place new_planes(std::uint64_t size);

  std::uint32_t chunks_ = 0;

  friend class BloscPlanner;
  friend class ZstdPlanner;
};

}  // namespace batchfs::gpu

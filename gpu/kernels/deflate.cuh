#pragma once
// Streams of deflate in zlib's or gzip's format (RFC 1950 to 1952): NetCDF-4 and HDF5 chunks by
// references, numcodecs' zlib and gzip, the blocks of Blosc with zlib.
//
// Parallelism: a block of threads for each stream, and within the stream the bits of a window: zlib
// ends a block after 16 thousand symbols, 10 to 25 KB of input, which a window holds whole. Like in
// lz4.cuh and huffman.cuh, each thread follows the codes of its segment of the window from a guess,
// then from where its predecessor ended until no start changes: codes that are followed from a
// wrong bit fall into step with the true ones after 100 to 200 bits. The end of the block is found
// on the way: codes behind it are followed in vain, once. A scan of the counts gives each thread's
// symbols their places, a last walk writes the literals into the output and the copies as runs, and
// copy.cuh executes these. So one stream keeps a multiprocessor busy, and no block's start has to
// be guessed.
//
// The windows of a stream remain in order, and one thread reads the lengths of a block's codes.
//
// The decoder refuses streams that zlib refuses: codes that are incomplete or too many, a distance
// that reaches before the stream, a wrong checksum. It also refuses streams with many tiny blocks
// or long file names, which would take too long here: the CPU decodes them.

#include "gpu/kernels/checksums.cuh"
#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/deflate_codes.cuh"
#include "gpu/kernels/deflate_window.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// Blocks that a stream may have: so many, and one for so many bytes, a thirtieth of a block of 16
/// thousand symbols.
inline constexpr std::uint32_t kMaxDeflateBlocks = 64, kMinDeflateBlock = 512;
/// Bits of a block, before one is known.
inline constexpr std::uint32_t kUsualDeflateBlock = 170'000;

/// RFC 1951, 3.2.7: the lengths of `count` codes, by one thread. Precondition: all are 0. Returns
/// the bit after them; 0 for damage.
template <int kThreads, int kTile>
BATCHFS_GPU std::uint32_t read_lengths(DeflateShared<kThreads, kTile>& shared, std::uint32_t at,
                                       std::uint32_t count) {
  constexpr int kTogether = 4;  // symbols of 14 bits at most
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < count;) {
    std::uint32_t low = window_bits(shared.memory.window, at),
                  high = window_bits(shared.memory.window, at + 32);
    for (int k = 0; k < kTogether && i < count; ++k) {
      const std::uint32_t entry = shared.lengths_codes.find(low);
      const std::uint32_t symbol = DeflateEntry::value(entry);
      const std::uint32_t repeats =
          LengthCodes::repeats(symbol) + DeflateEntry::full_value(entry, low) - symbol;
      const std::uint32_t bits = DeflateEntry::code_size(entry) + DeflateEntry::extra(entry);
      low = funnel(low, high, bits);
      high >>= bits;
      at += bits;
      if (symbol == 16 && i == 0) return 0;
      if (symbol != 16) before = symbol < 16 ? symbol : 0;
      if (repeats > count - i) return 0;
      if (before == 0)
        i += repeats;
      else
        for (const std::uint32_t end = i + repeats; i < end; ++i)
          shared.lengths[i] = static_cast<std::uint8_t>(before);
    }
  }
  return at;
}

/// Builds the codes of a block of fixed codes (3.2.6), or with a header at bit `at` of the window.
/// Returns where its symbols begin; 0 for damage.
template <int kThreads, int kTile>
BATCHFS_GPU std::uint32_t read_codes(DeflateShared<kThreads, kTile>& shared, bool fixed,
                                     std::uint32_t at) {
  std::uint32_t literals = LiteralCodes::kSymbols, distances = DistanceCodes::kSymbols;
  if (fixed) {
    each_thread<kThreads>([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < literals + distances; i += kThreads)
        shared.lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < literals ? 8 : 5;
    });
  } else {
    const std::uint32_t counts = window_bits(shared.memory.window, at);
    literals = 257 + (counts & 31);
    distances = 1 + (counts >> 5 & 31);
    const std::uint32_t lengths = 4 + (counts >> 10 & 15);
    if (literals > 286 || distances > 30) return 0;
    each_thread<kThreads>([&](int thread) {
      const auto i = static_cast<std::uint32_t>(thread);
      for (std::uint32_t k = i; k < literals + distances; k += kThreads) shared.lengths[k] = 0;
      if (i >= LengthCodes::kSymbols) return;
      // Where the symbol's length stands: 16, 17, 18, 0, 8, 7, 9, 6, 10 and so on.
      const std::uint32_t place = i >= 16 ? i - 16 : i == 0 ? 3 : i >= 8 ? 2 * i - 12 : 19 - 2 * i;
      shared.lengths_lengths[i] =
          place < lengths ? static_cast<std::uint8_t>(
                                window_bits(shared.memory.window, at + 14 + 3 * place) & 7)
                          : std::uint8_t{0};
    });
    if (!build_codes<kThreads>(shared.lengths_codes, shared.lengths_lengths,
                               LengthCodes::kSymbols) ||
        shared.lengths_codes.space() != kFullCodeSpace)
      return 0;
    each_thread<kThreads>([&](int thread) {
      if (thread == 0)
        shared.codes_begin = read_lengths(shared, at + 14 + 3 * lengths, literals + distances);
    });
    at = shared.codes_begin;
    if (at == 0 || shared.lengths[256] == 0) return 0;
  }
  if (!build_codes<kThreads>(shared.literals, shared.lengths, literals) ||
      !build_codes<kThreads>(shared.distances, shared.lengths + literals, distances))
    return 0;
  // zlib takes incomplete codes where they are one of one bit, or no distances.
  if (shared.literals.space() != kFullCodeSpace && !shared.literals.is_one_bit()) return 0;
  if (shared.distances.space() != kFullCodeSpace && !shared.distances.is_one_bit() &&
      shared.distances.space() != 0)
    return 0;
  return at;
}

/// Bits that a thread follows, so that a window holds a block of `bits` bits, if one can.
template <int kThreads>
BATCHFS_GPU std::uint32_t deflate_share(std::uint32_t bits) {
  const std::uint32_t words = bits / (32 * kThreads) + bits / (8 * 32 * kThreads) + 1;
  return 32 * (words < kMinDeflateShare   ? kMinDeflateShare
               : words > kMaxDeflateShare ? kMaxDeflateShare
                                          : words | 1);
}

/// Decodes the symbols of a block that begins at bit `bit` of the next byte, and sets `bit` to the
/// one after it. Returns false for damage.
template <int kThreads, int kTile>
BATCHFS_GPU bool decode_block(DeflateShared<kThreads, kTile>& shared, DeflateProgress& stream,
                              bool fixed, std::uint32_t& bit) {
  std::uint32_t done = 0;  // bits
  for (bool ended = false; !ended;) {
    const std::uint32_t rest = stream.expected_bits > done ? stream.expected_bits - done : 0;
    const std::uint32_t share = deflate_share<kThreads>(rest);
    load_window(shared, stream.in, stream.in_size, stream.next,
                share / 32 * kThreads + kDeflateHeaderWords);
    std::uint32_t at = bit;
    if (done == 0) {
      at = read_codes(shared, fixed, at);
      if (at == 0) return false;
    }
    if (!decode_window(shared, stream, share, at, ended)) return false;
    done += at - bit;
    stream.next += at / 8;
    bit = at % 8;
  }
  stream.expected_bits = done;
  return true;
}

/// Copies the block whose length stands at the next byte. Returns false for damage.
template <int kThreads>
BATCHFS_GPU bool copy_stored(DeflateProgress& stream) {
  if (stream.in_size - stream.next < 4) return false;
  const std::uint8_t* head = stream.in + stream.next;
  const std::uint32_t size = head[0] | std::uint32_t{head[1]} << 8,
                      inverse = head[2] | std::uint32_t{head[3]} << 8;
  stream.next += 4;
  if ((size ^ inverse) != 0xffff || size > stream.in_size - stream.next ||
      size > stream.size - stream.done)
    return false;
  copy_stretch<kThreads>(stream.in + stream.next, stream.out + stream.done, 0, size);
  stream.next += size;
  stream.done += size;
  return true;
}

/// Decodes the blocks from the next byte up to the last one. Returns false for damage.
template <int kThreads, int kTile>
BATCHFS_GPU bool inflate(DeflateShared<kThreads, kTile>& shared, DeflateProgress& stream) {
  std::uint32_t bit = 0;
  for (bool last = false; !last;) {
    const std::uint32_t left = stream.in_size - stream.next;
    if (stream.blocks_left == 0 || 8 * std::uint64_t{left} < bit + 3) return false;
    --stream.blocks_left;
    std::uint32_t head = stream.in[stream.next];
    if (left > 1) head |= std::uint32_t{stream.in[stream.next + 1]} << 8;
    head >>= bit;
    last = (head & 1) != 0;
    const std::uint32_t kind = head >> 1 & 3;
    bit += 3;
    if (kind == 0) {
      stream.next += (bit + 7) / 8;
      bit = 0;
      if (!copy_stored<kThreads>(stream)) return false;
    } else if (kind == 3 || !decode_block(shared, stream, kind == 1, bit)) {
      return false;
    }
  }
  stream.next += bit > 0 ? 1 : 0;
  return true;
}

/// RFC 1950: no preset dictionary.
BATCHFS_GPU bool skip_zlib_header(DeflateProgress& stream) {
  if (stream.in_size - stream.next < 2) return false;
  const std::uint32_t method = stream.in[stream.next], flags = stream.in[stream.next + 1];
  stream.next += 2;
  return (method & 15) == 8 && method >> 4 <= 7 && (method << 8 | flags) % 31 == 0 &&
         (flags & 0x20) == 0;
}

inline constexpr std::uint32_t kMaxGzipName = 256;

/// Skips a text that ends with a 0.
BATCHFS_GPU bool skip_name(DeflateProgress& stream) {
  for (std::uint32_t i = 0; i < kMaxGzipName && stream.next < stream.in_size; ++i)
    if (stream.in[stream.next++] == 0) return true;
  return false;
}

/// RFC 1952: no checksum of the header, which decoders treat differently.
BATCHFS_GPU bool skip_gzip_header(DeflateProgress& stream) {
  constexpr std::uint32_t kText = 1, kExtra = 4, kName = 8, kComment = 16;
  if (stream.in_size - stream.next < 10) return false;
  const std::uint8_t* head = stream.in + stream.next;
  const std::uint32_t flags = head[3];
  if (head[0] != 0x1f || head[1] != 0x8b || head[2] != 8 ||
      (flags & ~(kText | kExtra | kName | kComment)) != 0)
    return false;
  stream.next += 10;
  if ((flags & kExtra) != 0) {
    if (stream.in_size - stream.next < 2) return false;
    const std::uint32_t size = head[10] | std::uint32_t{head[11]} << 8;
    stream.next += 2;
    if (size > stream.in_size - stream.next) return false;
    stream.next += size;
  }
  return ((flags & kName) == 0 || skip_name(stream)) &&
         ((flags & kComment) == 0 || skip_name(stream));
}

/// Compares what was decoded since the header with the checksum, and for gzip the size, that
/// follow.
template <int kThreads>
BATCHFS_GPU bool check_trailer(ChecksumShared<kThreads>& shared, DeflateFormat format,
                               DeflateProgress& stream) {
  const std::uint32_t size = stream.done - stream.member;
  const std::uint8_t *bytes = stream.out + stream.member, *trailer = stream.in + stream.next;
  const std::uint32_t trailer_size = format == DeflateFormat::zlib ? 4 : 8;
  if (stream.in_size - stream.next < trailer_size) return false;
  stream.next += trailer_size;
  if (format == DeflateFormat::zlib)
    return pick_bytes(load_u32(trailer), 0, 0x0123) == adler32_of(shared, bytes, size);
  return load_u32(trailer + 4) == size && load_u32(trailer) == crc32_of(shared, bytes, size);
}

/// Decodes `stream`: as the CPU's decoder, one part in zlib's format and whatever follows it, or
/// all members of gzip. Returns false when it is damaged; the contents of the target are then
/// undefined.
template <int kThreads, int kTile>
BATCHFS_GPU bool decode_deflate(DeflateShared<kThreads, kTile>& shared, DeflateFormat format,
                                DeflateProgress& stream) {
  do {
    if (!(format == DeflateFormat::zlib ? skip_zlib_header(stream) : skip_gzip_header(stream)))
      return false;
    stream.member = stream.done;
    if (!inflate(shared, stream) || !check_trailer(shared.memory.checksum, format, stream))
      return false;
  } while (format == DeflateFormat::gzip && stream.next < stream.in_size);
  return stream.done == stream.size;
}

/// The work of one block of threads: stream number `number`.
template <int kThreads, int kTile>
BATCHFS_GPU void deflate_stream(DeflateShared<kThreads, kTile>& shared, const Work& work,
                                std::uint32_t number) {
  const DeflateStream& row = work.deflate_streams[number];
  DeflateProgress stream;
  stream.in = work.source + row.source;
  stream.in_size = row.source_size;
  stream.out = (row.target.area == Area::planes ? work.planes : work.target) + row.target.offset;
  stream.size = row.size;
  stream.next = stream.done = stream.member = 0;
  stream.runs = {work.runs + row.runs, work.run_index + row.run_index};
  stream.most_runs = max_deflate_runs(row.size);
  stream.blocks_left = kMaxDeflateBlocks + row.source_size / kMinDeflateBlock;
  stream.expected_bits = kUsualDeflateBlock < 8 * std::uint64_t{row.source_size}
                             ? kUsualDeflateBlock
                             : 8 * row.source_size;
  const bool good = decode_deflate(shared, row.format, stream);
  each_thread<kThreads>([&](int thread) {
    if (thread == 0 && !good) raise_to(work.status + row.chunk, kDamaged);
  });
}

}  // namespace batchfs::gpu

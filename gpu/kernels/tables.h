#pragma once
// The work tables that the host writes and the kernels read: plain structs, one row per independent
// piece of work. Offsets are bytes from the start of an area; the host has checked every one of
// them against its area, so a kernel checks only what it reads from compressed data.

#include <cstdint>

namespace batchfs::gpu {

/// The memory that a batch of chunks is decoded in.
enum class Area : std::uint32_t {
  source,  // the compressed chunks, as stored
  planes,  // shuffled bytes on their way to the target
  target,  // the decoded chunks
};

struct Place {
  Area area = Area::source;
  std::uint64_t offset = 0;
};

/// Outcome of a chunk: the greatest status of its streams.
enum Status : std::uint32_t {
  kDecoded = 0,
  kDamaged = 1,  // refused by the GPU's decoder: the CPU decides
};

/// One run of output bytes and where they come from. The runs of a stream follow one another
/// without gaps from byte 0, so a run ends where the next one starts. `from` is, by its top bits:
///   1…    a position in the stream's literals;
///   00…   a match: the distance back in the output;
///   01…   a match whose distance is one of the three repeated offsets at the start of the
///         Zstandard block, less a few (repeat.cuh).
struct Run {
  std::uint32_t start = 0;
  std::uint32_t from = 0;
};

inline constexpr std::uint32_t kLiteralRun = 0x80000000u;
inline constexpr std::uint32_t kMaxStream = 1u << 30;  // keeps distances and positions in 30 bits

/// run_index[i] is the run that holds output byte i * kIndexed: where a warp starts to copy.
inline constexpr std::uint32_t kIndexed = 256;

struct Lz4Stream {
  std::uint64_t source = 0;  // in the source area
  Place target;
  std::uint32_t source_size = 0;
  std::uint32_t size = 0;
  std::uint64_t runs = 0;       // first of max_lz4_runs(source_size) entries of the runs area
  std::uint64_t run_index = 0;  // first of indexed(size) entries of the run index area
  std::uint32_t chunk = 0;      // index of its status
};

/// A stream with more input than this gets more threads.
inline constexpr std::uint32_t kLongLz4Stream = 256 * 1024;

/// A sequence with literals takes four bytes of input or more and makes two runs, one without takes
/// three and makes one.
constexpr std::uint64_t max_lz4_runs(std::uint64_t source_size) { return source_size / 2 + 1; }
constexpr std::uint64_t indexed(std::uint64_t size) { return (size + kIndexed - 1) / kIndexed; }

enum class DeflateFormat : std::uint8_t { zlib, gzip };

struct DeflateStream {
  std::uint64_t source = 0;  // in the source area
  Place target;
  std::uint32_t source_size = 0;
  std::uint32_t size = 0;
  std::uint64_t runs = 0;       // first of max_deflate_runs(size) entries of the runs area
  std::uint64_t run_index = 0;  // first of indexed(size) entries of the run index area
  std::uint32_t chunk = 0;      // index of its status
  DeflateFormat format = DeflateFormat::zlib;
};

/// Runs of a part of a stream that is decoded in one step. A thread's symbols make fewer than 512:
/// a step has room for one thread's, and with zlib's blocks for all.
constexpr std::uint32_t max_deflate_runs(std::uint32_t size) {
  constexpr std::uint32_t kMost = 32 * 1024, kLeast = 512;
  return size / 4 < kMost - kLeast ? kLeast + size / 4 : kMost;
}

enum class Order : std::uint8_t { copied, shuffled, bitshuffled };

/// One stretch of a target that gets its bytes from planes in their final form or shuffled by item.
struct Unshuffle {
  std::uint64_t target = 0;  // in the target area
  std::uint32_t size = 0;    // bytes
  std::uint32_t planes = 0;  // first row of the planes table
  std::uint16_t item = 1;    // bytes per item
  Order order = Order::copied;
  bool split = false;  // one row of the planes table per byte of an item, or one row for all
  std::uint32_t chunk = 0;
};

enum class ZstdBlockKind : std::uint8_t { raw, rle, compressed };
enum class LiteralKind : std::uint8_t { raw, rle, huffman };

/// The three kinds of codes of a sequence, in the order of their tables in a block.
inline constexpr int kLiteralLengths = 0, kOffsets = 1, kMatchLengths = 2;
/// In ZstdBlock::tables: the format's default distribution.
inline constexpr std::uint32_t kDefaultTable = 0xffffffffu;

struct ZstdBlock {
  ZstdBlockKind kind = ZstdBlockKind::raw;
  LiteralKind literal_kind = LiteralKind::raw;
  std::uint8_t literal_streams = 1;  // Huffman-coded: 1 or 4
  std::uint32_t chunk = 0;
  std::uint32_t size =
      0;  // of a raw or RLE block: output bytes; of a compressed one: the most it may have
  std::uint64_t source = 0;               // of a raw or RLE block: its content
  std::uint64_t literals = 0;             // raw: in the source area; else in the literals area
  std::uint32_t literal_size = 0;         // decoded
  std::uint64_t literal_source = 0;       // the compressed literals: streams, without the tree
  std::uint64_t literal_source_size = 0;  // with the tree where the block has one
  bool literal_tree = false;              // the tree stands before the streams
  std::uint32_t tree = 0;                 // the block whose tree these literals use
  std::uint64_t sequences = 0;            // the section, from its modes byte on
  std::uint32_t sequences_size = 0;
  std::uint32_t sequence_count = 0;
  std::uint32_t tables[3] = {};  // the block whose table each code uses, or kDefaultTable
  std::uint64_t runs = 0;        // first of max_zstd_runs(sequence_count)
  std::uint64_t run_index = 0;   // first of indexed(kZstdBlockSize)
};

inline constexpr std::uint32_t kZstdBlockSize = 128 * 1024;
constexpr std::uint64_t max_zstd_runs(std::uint64_t sequences) { return 2 * sequences + 1; }

/// Result of the entropy stage for a block.
struct ZstdBlockResult {
  std::uint32_t size = 0;  // output bytes
  std::uint32_t runs = 0;
  std::uint32_t repeats[3] = {};  // the repeated offsets at its end (repeat.cuh)
};

struct ZstdFrame {
  std::uint32_t first_block = 0, blocks = 0;
  Place target;
  std::uint32_t size = 0;
  bool has_checksum = false;
  std::uint32_t checksum = 0;
  std::uint32_t chunk = 0;
};

/// All arguments of a kernel.
struct Work {
  const std::uint8_t* source = nullptr;
  std::uint8_t* planes = nullptr;
  std::uint8_t* target = nullptr;
  std::uint8_t* literals = nullptr;
  Run* runs = nullptr;
  std::uint32_t* run_index = nullptr;
  std::uint32_t* status = nullptr;  // one per chunk
  const Lz4Stream* lz4_streams = nullptr;
  const DeflateStream* deflate_streams = nullptr;
  const ZstdBlock* zstd_blocks = nullptr;
  ZstdBlockResult* zstd_results = nullptr;
  const ZstdFrame* zstd_frames = nullptr;
  const Unshuffle* unshuffles = nullptr;
  const Place* plane_places = nullptr;
};

}  // namespace batchfs::gpu

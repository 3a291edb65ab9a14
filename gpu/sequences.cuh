#pragma once
// The sequences section of a Zstandard block (RFC 8878, 3.1.1.3.2 and 3.1.1.4): from a bit stream to runs.
//
// What is parallel: blocks, and within one all but the chain of states. The next state of the three tables
// depends on the bits after the previous sequence's, so one lane follows it and does nothing else: three
// lookups, one subtraction for all bit counts together, one read of the bits, noting for each sequence the
// states and where its bits start. After 32 sequences the warp takes over: each lane turns its note into
// lengths and offset, scans give positions and repeated offsets, and the runs are written. The part of the
// bit stream that 32 sequences can take is staged in shared memory first.

#include "gpu/copy.cuh"
#include "gpu/device.h"
#include "gpu/fse.cuh"
#include "gpu/repeat.cuh"
#include "gpu/tables.h"

namespace batchfs::gpu {

inline constexpr int kStagedWords = 128;
inline constexpr std::uint32_t kRle = 0xffu;  // in place of an accuracy: the table has one symbol

struct SequencesShared {
  std::uint32_t tables[3][512];
  FseCounts counts[4];
  FseScratch scratch;
  std::uint32_t staged[kStagedWords];
  std::uint32_t note_states[kLanes];  // literal length | offset << 9 | match length << 17
  int note_bits[kLanes];              // where the extra bits of the sequence end
  std::uint32_t damaged;
  std::uint32_t bits_begin;  // of the bit stream in the section
  // The chain, between batches.
  std::uint32_t state[3];
  int at;
};

BATCHFS_GPU_TABLE std::int8_t kDefaultLiteralLengths[36] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,  2,  1,  1,  1,  2, 2,
                                                            2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
BATCHFS_GPU_TABLE std::int8_t kDefaultOffsets[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1,  1,  1, 1,
                                                     1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
BATCHFS_GPU_TABLE std::int8_t kDefaultMatchLengths[53] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1,  1,  1,  1,
                                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,
                                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
/// What the codes with extra bits start from, and how many those are.
BATCHFS_GPU_TABLE std::uint32_t kLiteralLengthBase[20] = {16,  18,  20,  22,   24,   28,   32,   40,    48,    64,
                                                          128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
BATCHFS_GPU_TABLE std::uint8_t kLiteralLengthExtra[20] = {1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
BATCHFS_GPU_TABLE std::uint32_t kMatchLengthBase[21] = {35, 37,  39,  41,  43,   47,   51,   59,   67,    83,   99,
                                                        131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};
BATCHFS_GPU_TABLE std::uint8_t kMatchLengthExtra[21] = {1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

BATCHFS_GPU std::uint32_t codes(int code) { return code == kLiteralLengths ? 36 : code == kOffsets ? 32 : 53; }

BATCHFS_GPU std::uint32_t extra_bits(int code, std::uint32_t symbol) {
  if (code == kLiteralLengths) return symbol < 16 ? 0 : kLiteralLengthExtra[symbol - 16];
  if (code == kMatchLengths) return symbol < 32 ? 0 : kMatchLengthExtra[symbol - 32];
  return symbol;
}

/// Reads the distribution of `code` from the section of the block that defines it, by one lane; with code 3,
/// goes past all three. Returns where it ends in the section, 0 for damage.
BATCHFS_GPU std::uint32_t find_counts(const std::uint8_t* section, std::uint32_t size, int code, FseCounts& counts) {
  const std::uint32_t modes = section[0];
  std::uint32_t at = 1;
  for (int i = 0; i <= (code < 3 ? code : 2); ++i) {
    const std::uint32_t mode = modes >> (6 - 2 * i) & 3;
    if (mode == 1) {
      if (at >= size) return 0;
      counts.accuracy = kRle;
      counts.count[0] = section[at++];
      if (static_cast<std::uint32_t>(counts.count[0]) >= codes(i)) return 0;
    } else if (mode == 2) {
      const std::uint32_t taken =
          at < size ? read_counts(section + at, size - at, i == kOffsets ? 8 : 9, codes(i), counts) : 0;
      if (taken == 0) return 0;
      at += taken;
    }
  }
  return at;
}

BATCHFS_GPU void default_counts(int code, FseCounts& counts) {
  counts.accuracy = code == kOffsets ? 5 : 6;
  counts.symbols = code == kLiteralLengths ? 36 : code == kOffsets ? 29 : 53;
  for (std::uint32_t s = 0; s < counts.symbols; ++s)
    counts.count[s] = code == kLiteralLengths ? kDefaultLiteralLengths[s]
                      : code == kOffsets      ? kDefaultOffsets[s]
                                              : kDefaultMatchLengths[s];
}

/// The three tables of `block` and its bit stream's place, by a warp.
BATCHFS_GPU bool load_tables(SequencesShared& shared, const Work& work, const ZstdBlock& block) {
  each_lane([&](int lane) {
    if (lane == 0) shared.damaged = 0;
  });
  sync_lanes();
  each_lane([&](int lane) {
    if (lane > 3) return;
    if (lane < 3 && block.tables[lane] == kDefaultTable) {
      default_counts(lane, shared.counts[lane]);
      return;
    }
    const ZstdBlock& from = lane < 3 ? work.zstd_blocks[block.tables[lane]] : block;
    const std::uint32_t end = find_counts(work.source + from.sequences, from.sequences_size, lane, shared.counts[lane]);
    if (end == 0) shared.damaged = 1;
    if (lane == 3) shared.bits_begin = end;
  });
  sync_lanes();
  if (shared.damaged != 0) return false;
  for (int code = 0; code < 3; ++code) {
    if (shared.counts[code].accuracy != kRle) {
      build_table(shared.counts[code], shared.scratch, shared.tables[code],
                  [&](std::uint32_t symbol) { return extra_bits(code, symbol); });
      continue;
    }
    each_lane([&](int lane) {
      if (lane != 0) return;
      const auto symbol = static_cast<std::uint32_t>(shared.counts[code].count[0]);
      shared.tables[code][0] = FseEntry::packed(0, symbol, 0, extra_bits(code, symbol));
    });
  }
  sync_lanes();
  return true;
}

/// The part of the bit stream in shared memory: words from `first` on.
struct Staged {
  const std::uint32_t* words;
  int first;

  /// The `count` bits (below 32) from bit `at` on.
  BATCHFS_GPU std::uint32_t bits(int at, std::uint32_t count) const {
    const int word = (at >> 5) - first;
    return funnel(words[word], words[word + 1], at & 31) & ((1u << count) - 1);
  }
};

/// Follows the chain over `count` sequences, the last of the block with them if `last`, by one lane.
BATCHFS_GPU void follow_states(SequencesShared& shared, const Staged& staged, std::uint32_t count, bool last) {
  std::uint32_t literal = shared.state[0], offset = shared.state[1], match = shared.state[2];
  int at = shared.at;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t l = shared.tables[kLiteralLengths][literal], o = shared.tables[kOffsets][offset],
                        m = shared.tables[kMatchLengths][match], sum = l + o + m;
    shared.note_states[i] = literal | offset << 9 | match << 17;
    shared.note_bits[i] = at;
    at -= static_cast<int>(FseEntry::extra(sum));
    if (last && i + 1 == count) break;
    const std::uint32_t total = FseEntry::bits(sum);
    at -= static_cast<int>(total);
    const std::uint32_t bits = staged.bits(at, total), of = FseEntry::bits(o), ml = FseEntry::bits(m);
    literal = FseEntry::next(l) + (bits >> (of + ml));
    match = FseEntry::next(m) + (bits >> of & ((1u << ml) - 1));
    offset = FseEntry::next(o) + (bits & ((1u << of) - 1));
  }
  shared.state[0] = literal;
  shared.state[1] = offset;
  shared.state[2] = match;
  shared.at = at;
}

/// The change that each lane's sequence and all before it make together.
BATCHFS_GPU void scan_repeats(Lanes<std::uint32_t> (&offsets)[3]) {
  for (int distance = 1; distance < kLanes; distance *= 2) {
    Lanes<std::uint32_t> below[3];
    for (int k = 0; k < 3; ++k) below[k] = from_below(offsets[k], distance);
    each_lane([&](int lane) {
      if (lane < distance) return;
      const Repeats change{{offsets[0][lane], offsets[1][lane], offsets[2][lane]}};
      const Repeats both = composed(change, Repeats{{below[0][lane], below[1][lane], below[2][lane]}});
      for (int k = 0; k < 3; ++k) offsets[k][lane] = both.offset[k];
    });
  }
}

/// Where a block's runs have got to.
struct BlockProgress {
  std::uint32_t size = 0, literals = 0, runs = 0;
  Repeats repeats;
};

/// Turns the notes of `count` sequences into runs, by a warp.
BATCHFS_GPU bool write_sequences(SequencesShared& shared, const Staged& staged, const ZstdBlock& block,
                                 std::uint32_t count, const RunWriter& writer, BlockProgress& progress) {
  Lanes<std::uint32_t> literals, match, size, runs, offsets[3];
  Lanes<bool> damaged;
  each_lane([&](int lane) {
    const auto i = static_cast<std::uint32_t>(lane);
    Repeats change = same_repeats();
    literals[lane] = match[lane] = runs[lane] = 0;
    damaged[lane] = false;
    if (i < count) {
      const std::uint32_t states = shared.note_states[i];
      const std::uint32_t l = shared.tables[kLiteralLengths][states & 0x1ff],
                          o = shared.tables[kOffsets][states >> 9 & 0xff], m = shared.tables[kMatchLengths][states >> 17];
      int at = shared.note_bits[i] - static_cast<int>(FseEntry::extra(o));
      const std::uint32_t code = FseEntry::symbol(o), l_code = FseEntry::symbol(l), m_code = FseEntry::symbol(m);
      const std::uint32_t value = (1u << code) + staged.bits(at, FseEntry::extra(o));
      at -= static_cast<int>(FseEntry::extra(m));
      match[lane] = (m_code < 32 ? m_code + 3 : kMatchLengthBase[m_code - 32]) + staged.bits(at, FseEntry::extra(m));
      at -= static_cast<int>(FseEntry::extra(l));
      literals[lane] = (l_code < 16 ? l_code : kLiteralLengthBase[l_code - 16]) + staged.bits(at, FseEntry::extra(l));
      runs[lane] = literals[lane] > 0 ? 2 : 1;
      damaged[lane] = value > kLongestDistance;
      if (!damaged[lane]) change = change_of(value, literals[lane] > 0);
    }
    size[lane] = literals[lane] + match[lane];
    for (int k = 0; k < 3; ++k) offsets[k][lane] = change.offset[k];
  });
  if (ballot(damaged) != 0) return false;
  scan_repeats(offsets);
  const Lanes<std::uint32_t> sizes = inclusive_scan(size), literal_sums = inclusive_scan(literals),
                             run_sums = inclusive_scan(runs);
  const std::uint32_t total = value_of(sizes, kLanes - 1), total_literals = value_of(literal_sums, kLanes - 1);
  if (total > block.size - progress.size || total_literals > block.literal_size - progress.literals) return false;
  each_lane([&](int lane) {
    if (static_cast<std::uint32_t>(lane) >= count) return;
    std::uint32_t number = progress.runs + run_sums[lane] - runs[lane];
    std::uint32_t start = progress.size + sizes[lane] - size[lane];
    if (literals[lane] > 0) {
      writer.write(number++, start, literals[lane], kLiteralRun | (progress.literals + literal_sums[lane] - literals[lane]));
      start += literals[lane];
    }
    writer.write(number, start, match[lane], resolved(offsets[0][lane], progress.repeats));
  });
  progress.size += total;
  progress.literals += total_literals;
  progress.runs += value_of(run_sums, kLanes - 1);
  const Repeats change{{value_of(offsets[0], kLanes - 1), value_of(offsets[1], kLanes - 1), value_of(offsets[2], kLanes - 1)}};
  progress.repeats = composed(change, progress.repeats);
  return true;
}

/// Decodes the sequences of a block into runs, by a warp. Returns false for damage.
BATCHFS_GPU bool decode_sequences(SequencesShared& shared, const Work& work, const ZstdBlock& block,
                                  ZstdBlockResult& result) {
  const RunWriter writer{work.runs + block.runs, work.run_index + block.run_index};
  BlockProgress progress;
  progress.repeats = same_repeats();
  if (block.sequence_count > 0) {
    if (!load_tables(shared, work, block)) return false;
    if (shared.bits_begin >= block.sequences_size) return false;
    const std::uint8_t* bytes = work.source + block.sequences + shared.bits_begin;
    const std::uint32_t size = block.sequences_size - shared.bits_begin;
    int start = backward_start(bytes, size);
    if (start < 0) return false;
    each_lane([&](int lane) {
      if (lane != 0) return;
      for (int code = 0; code < 3; ++code) {
        const std::uint32_t accuracy = shared.counts[code].accuracy == kRle ? 0 : shared.counts[code].accuracy;
        start -= static_cast<int>(accuracy);
        shared.state[code] = stream_bits(bytes, size, start, accuracy);
      }
      shared.at = start;
    });
    sync_lanes();
    for (std::uint32_t left = block.sequence_count; left > 0;) {
      if (shared.at < 0) return false;
      const std::uint32_t count = left < kLanes ? left : kLanes;
      // 32 sequences take 32 * 89 bits at most: 90 words. One word more is read past the last bits.
      const Staged staged{shared.staged, (shared.at >> 5) - (kStagedWords - 2)};
      each_lane([&](int lane) {
        for (int i = lane; i < kStagedWords; i += kLanes)
          shared.staged[i] = stream_word(bytes, size, staged.first + i);
      });
      sync_lanes();
      each_lane([&](int lane) {
        if (lane == 0) follow_states(shared, staged, count, count == left);
      });
      sync_lanes();
      if (!write_sequences(shared, staged, block, count, writer, progress)) return false;
      sync_lanes();
      left -= count;
    }
    if (shared.at != 0) return false;
  }
  const std::uint32_t rest = block.literal_size - progress.literals;
  if (rest > block.size - progress.size) return false;
  each_lane([&](int lane) {
    if (lane != 0) return;
    if (rest > 0) writer.write(progress.runs, progress.size, rest, kLiteralRun | progress.literals);
    result.size = progress.size + rest;
    result.runs = progress.runs + (rest > 0 ? 1 : 0);
    for (int k = 0; k < 3; ++k) result.repeats[k] = progress.repeats.offset[k];
  });
  return true;
}

}  // namespace batchfs::gpu

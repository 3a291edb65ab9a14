#pragma once
// The sequences section of a Zstandard block (RFC 8878, 3.1.1.3.2 and 3.1.1.4): from a bit stream to runs.
//
// What is parallel: blocks, and within one all but the chain of states. The next state of the three tables
// depends on the bits after the previous sequence's, so one lane follows it and does nothing else: three
// lookups, while the 64 bits before it are put together; one sum for all bit counts; three shifts; noting for
// each sequence the states and where its bits start. Meanwhile a second warp turns the notes of the previous
// 64 sequences into runs (each lane extracts lengths and offset, scans give positions and repeated offsets),
// and a third brings the coming part of the bit stream to shared memory. A barrier per 64 sequences keeps
// the three in step.

#include "gpu/copy.cuh"
#include "gpu/device.h"
#include "gpu/fse.cuh"
#include "gpu/repeat.cuh"
#include "gpu/tables.h"

namespace batchfs::gpu {

inline constexpr int kNoted = 64;  // sequences between two barriers
/// What they can take of the bit stream: 89 bits each; and the words around both ends.
inline constexpr int kNotedWords = kNoted * 89 / 32 + 4;
inline constexpr int kStagedWords = 1024;  // a ring: the words of the previous, this and the next notes
static_assert(kStagedWords > 3 * kNotedWords + 4);
inline constexpr std::uint32_t kRle = 0xffu;  // in place of an accuracy: the table has one symbol

/// What the chain leaves behind of a sequence.
struct SequenceNote {
  std::uint32_t states;  // literal length | offset << 9 | match length << 17
  int at;                // the bit below which its extra bits are
};

struct SequencesShared {
  std::uint32_t tables[3][512];
  FseCounts counts[4];
  FseScratch scratch;
  std::uint32_t staged[kStagedWords];
  SequenceNote notes[2][kNoted];
  std::uint32_t damaged;
  std::uint32_t bits_begin;  // of the bit stream in the section
  // The chain, between notes.
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

/// The part of the bit stream that is in shared memory.
struct Staged {
  const std::uint32_t* words;

  BATCHFS_GPU std::uint32_t word(int index) const { return words[index & (kStagedWords - 1)]; }
  /// The `count` bits (below 32) from bit `at` on.
  BATCHFS_GPU std::uint32_t bits(int at, std::uint32_t count) const {
    return funnel(word(at >> 5), word((at >> 5) + 1), at & 31) & ((1u << count) - 1);
  }
  /// The 32 bits below bit `at`.
  BATCHFS_GPU std::uint32_t below(int at) const { return funnel(word((at >> 5) - 1), word(at >> 5), at & 31); }
};

/// Stages words [first, last) of the stream, by a warp.
BATCHFS_GPU void stage(SequencesShared& shared, const std::uint8_t* bytes, std::uint32_t size, int first, int last) {
  each_lane([&](int lane) {
    for (int i = first + lane; i < last; i += kLanes)
      shared.staged[i & (kStagedWords - 1)] = stream_word(bytes, size, i);
  });
}

/// Follows the chain over `count` sequences, the last of the block with them if `last`, by one lane.
BATCHFS_GPU void follow_states(SequencesShared& shared, SequenceNote* notes, std::uint32_t count, bool last) {
  const Staged staged{shared.staged};
  std::uint32_t literal = shared.state[0], offset = shared.state[1], match = shared.state[2];
  int at = shared.at;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t l = shared.tables[kLiteralLengths][literal], o = shared.tables[kOffsets][offset],
                        m = shared.tables[kMatchLengths][match], sum = l + o + m;
    const std::uint32_t high = staged.below(at), low = staged.below(at - 32);
    notes[i] = {literal | offset << 9 | match << 17, at};
    const std::uint32_t extra = FseEntry::extra(sum), total = FseEntry::bits(sum);
    at -= static_cast<int>(extra);
    if (last && i + 1 == count) break;
    std::uint32_t bits = funnel_left(low, high, extra & 31);
    if (extra >= 32) bits = staged.below(at);
    at -= static_cast<int>(total);
    const std::uint32_t l_bits = FseEntry::bits(l), m_bits = FseEntry::bits(m), o_bits = FseEntry::bits(o);
    literal = FseEntry::next(l) + top_bits(bits, l_bits);
    match = FseEntry::next(m) + top_bits(bits << l_bits, m_bits);
    offset = FseEntry::next(o) + top_bits(bits << (l_bits + m_bits), o_bits);
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

/// Turns the notes of `count` sequences, 32 at most, into runs, by a warp.
BATCHFS_GPU bool write_sequences(const SequencesShared& shared, const SequenceNote* notes, const ZstdBlock& block,
                                 std::uint32_t count, const RunWriter& writer, BlockProgress& progress) {
  const Staged staged{shared.staged};
  Lanes<std::uint32_t> literals, match, size, runs, offsets[3];
  Lanes<bool> damaged;
  each_lane([&](int lane) {
    const auto i = static_cast<std::uint32_t>(lane);
    Repeats change = same_repeats();
    literals[lane] = match[lane] = runs[lane] = 0;
    damaged[lane] = false;
    if (i < count) {
      const std::uint32_t states = notes[i].states;
      const std::uint32_t l = shared.tables[kLiteralLengths][states & 0x1ff],
                          o = shared.tables[kOffsets][states >> 9 & 0xff], m = shared.tables[kMatchLengths][states >> 17];
      int at = notes[i].at - static_cast<int>(FseEntry::extra(o));
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

/// Loads the tables and begins the chain, by a warp. Returns false for damage.
BATCHFS_GPU bool begin_states(SequencesShared& shared, const Work& work, const ZstdBlock& block) {
  if (!load_tables(shared, work, block) || shared.bits_begin >= block.sequences_size) return false;
  const std::uint8_t* bytes = work.source + block.sequences + shared.bits_begin;
  const std::uint32_t size = block.sequences_size - shared.bits_begin;
  const int start = backward_start(bytes, size);
  if (start < 0) return false;
  int at = start;
  for (int code = 0; code < 3; ++code) {
    const std::uint32_t accuracy = shared.counts[code].accuracy == kRle ? 0 : shared.counts[code].accuracy;
    at -= static_cast<int>(accuracy);
    const std::uint32_t state = stream_bits(bytes, size, at, accuracy);
    each_lane([&](int lane) {
      if (lane == 0) shared.state[code] = state;
    });
  }
  each_lane([&](int lane) {
    if (lane == 0) shared.at = at;
  });
  stage(shared, bytes, size, (at >> 5) - kNotedWords, (at >> 5) + 2);
  return true;
}

/// Writes the run of the literals after the last sequence and what is known of the block, by a warp.
BATCHFS_GPU bool end_block(const ZstdBlock& block, const RunWriter& writer, const BlockProgress& progress,
                           ZstdBlockResult& result) {
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

/// Decodes the sequences of a block into runs, by the warps of a block of threads. Returns false for damage.
template <int kThreads>
BATCHFS_GPU bool decode_sequences(SequencesShared& shared, const Work& work, const ZstdBlock& block,
                                  ZstdBlockResult& result) {
  static_assert(kThreads >= 3 * kLanes);
  const RunWriter writer{work.runs + block.runs, work.run_index + block.run_index};
  BlockProgress progress;  // the second warp's
  progress.repeats = same_repeats();
  const std::uint32_t count = block.sequence_count;
  if (count > 0) {
    if (any_warp<kThreads>([&](int warp) { return warp == 0 && !begin_states(shared, work, block); })) return false;
    const std::uint8_t* bytes = work.source + block.sequences + shared.bits_begin;
    const std::uint32_t size = block.sequences_size - shared.bits_begin;
    int lowest = (shared.at >> 5) - kNotedWords;  // of the words staged: the third warp's
    const std::uint32_t rounds = (count + kNoted - 1) / kNoted;
    for (std::uint32_t round = 0; round <= rounds; ++round) {
      const int at = shared.at;  // where this round's notes begin
      each_thread<kThreads>([](int) {});
      const bool damaged = any_warp<kThreads>([&](int warp) {
        if (warp == 0 && round < rounds) {
          const std::uint32_t done = round * kNoted, left = count - done;
          each_lane([&](int lane) {
            if (lane == 0) follow_states(shared, shared.notes[round % 2], left < kNoted ? left : kNoted, left <= kNoted);
          });
        }
        if (warp == 1 && round > 0) {
          const SequenceNote* notes = shared.notes[(round - 1) % 2];
          const std::uint32_t left = count - (round - 1) * kNoted;
          for (std::uint32_t k = 0; k < kNoted && k < left; k += kLanes)
            if (!write_sequences(shared, notes + k, block, left - k < kLanes ? left - k : kLanes, writer, progress))
              return true;
        }
        if (warp == 2 && round + 1 < rounds) {
          const int first = (at >> 5) - 2 * kNotedWords;
          stage(shared, bytes, size, first, lowest);
          lowest = first < lowest ? first : lowest;
        }
        return at < 0;
      });
      if (damaged) return false;
    }
    if (shared.at != 0) return false;
  }
  return !any_warp<kThreads>([&](int warp) { return warp == 1 && !end_block(block, writer, progress, result); });
}

}  // namespace batchfs::gpu

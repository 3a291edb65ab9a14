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
inline constexpr int kMirrored = 3;
inline constexpr std::uint32_t kRle = 0xffu;  // in place of an accuracy: the table has one symbol

/// What the chain leaves behind of a sequence.
struct SequenceNote {
  std::uint32_t states;  // literal length | offset << 9 | match length << 17
  int at;                // the bit below which its extra bits are
};

struct SequencesShared {
  std::uint32_t tables[3][512];
  std::uint32_t bases[2][64];  // what the lengths of literals and of matches start from, by symbol
  FseCounts counts[4];
  FseScratch scratch;
  std::uint32_t staged[kMirrored + kStagedWords];  // the last words also stand before the first
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
    } else if (i == code) {
      return 0;  // it defines none
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
    for (auto s = static_cast<std::uint32_t>(lane); s < 64; s += kLanes) {
      shared.bases[0][s] = s < 16 ? s : kLiteralLengthBase[s < 36 ? s - 16 : 0];
      shared.bases[1][s] = s < 32 ? s + 3 : kMatchLengthBase[s < 53 ? s - 32 : 0];
    }
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

  /// Three words before it can be read from here, too.
  BATCHFS_GPU const std::uint32_t* at_word(int index) const { return words + kMirrored + (index & (kStagedWords - 1)); }
  /// The `count` bits (below 32) from bit `at` on.
  BATCHFS_GPU std::uint32_t bits(int at, std::uint32_t count) const {
    const std::uint32_t* end = at_word((at >> 5) + 1);
    return funnel(end[-1], end[0], static_cast<unsigned>(at)) & ((1u << count) - 1);
  }
};

/// Stages words [first, last) of the stream, by a warp.
BATCHFS_GPU void stage(SequencesShared& shared, const std::uint8_t* bytes, std::uint32_t size, int first, int last) {
  each_lane([&](int lane) {
    for (int i = first + lane; i < last; i += kLanes) {
      const std::uint32_t word = stream_word(bytes, size, i);
      const int place = i & (kStagedWords - 1);
      shared.staged[kMirrored + place] = word;
      if (place >= kStagedWords - kMirrored) shared.staged[kMirrored + place - kStagedWords] = word;
    }
  });
}

/// Follows the chain over `count` sequences, the last of the block with them if `last`, by one lane.
BATCHFS_GPU void follow_states(SequencesShared& shared, SequenceNote* notes, std::uint32_t count, bool last) {
  const Staged staged{shared.staged};
  std::uint32_t literal = shared.state[0], offset = shared.state[1], match = shared.state[2];
  int at = shared.at;
  const std::uint32_t followed = last ? count - 1 : count;
  for (std::uint32_t i = 0; i < followed; ++i) {
    const std::uint32_t l = shared.tables[kLiteralLengths][literal], o = shared.tables[kOffsets][offset],
                        m = shared.tables[kMatchLengths][match], sum = l + o + m;
    const std::uint32_t* word = staged.at_word(at >> 5);
    const auto shift = static_cast<unsigned>(at);
    const std::uint32_t high = funnel(word[-1], word[0], shift), middle = funnel(word[-2], word[-1], shift),
                        low = funnel(word[-3], word[-2], shift);
    notes[i] = {literal | offset << 9 | match << 17, at};
    const bool far = (sum & 32u << FseEntry::kExtra) != 0;
    const std::uint32_t bits = funnel_left(far ? low : middle, far ? middle : high, sum >> FseEntry::kExtra);
    at -= static_cast<int>(FseEntry::extra(sum) + FseEntry::bits(sum));
    literal = FseEntry::next(l) + top_bits(bits, l);
    match = FseEntry::next(m) + top_bits(funnel_left(0, bits, l), m);
    offset = FseEntry::next(o) + top_bits(funnel_left(0, bits, l + m), o);
  }
  if (last) {  // it has extra bits, but no next states
    notes[followed] = {literal | offset << 9 | match << 17, at};
    at -= static_cast<int>(FseEntry::extra(shared.tables[kLiteralLengths][literal] + shared.tables[kOffsets][offset] +
                                           shared.tables[kMatchLengths][match]));
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

/// Turns the notes of `count` sequences, two for each lane, into runs, by a warp.
BATCHFS_GPU bool write_sequences(const SequencesShared& shared, const SequenceNote* notes, const ZstdBlock& block,
                                 std::uint32_t count, const RunWriter& writer, BlockProgress& progress) {
  static_assert(kNoted == 2 * kLanes);
  const Staged staged{shared.staged};
  Lanes<std::uint32_t> literals[2], match[2], size, literal_size, first[3], both[3];
  Lanes<bool> damaged, has_literals[2];
  each_lane([&](int lane) {
    damaged[lane] = false;
    Repeats changes[2];
    for (int k = 0; k < 2; ++k) {
      const auto i = static_cast<std::uint32_t>(2 * lane + k);
      changes[k] = same_repeats();
      literals[k][lane] = match[k][lane] = 0;
      if (i < count) {
        const std::uint32_t states = notes[i].states;
        const std::uint32_t l = shared.tables[kLiteralLengths][states & 0x1ff],
                            o = shared.tables[kOffsets][states >> 9 & 0xff], m = shared.tables[kMatchLengths][states >> 17];
        int at = notes[i].at - static_cast<int>(FseEntry::extra(o));
        const std::uint32_t value = (1u << FseEntry::symbol(o)) + staged.bits(at, FseEntry::extra(o));
        at -= static_cast<int>(FseEntry::extra(m));
        match[k][lane] = shared.bases[1][FseEntry::symbol(m)] + staged.bits(at, FseEntry::extra(m));
        at -= static_cast<int>(FseEntry::extra(l));
        literals[k][lane] = shared.bases[0][FseEntry::symbol(l)] + staged.bits(at, FseEntry::extra(l));
        if (value > kLongestDistance)
          damaged[lane] = true;
        else
          changes[k] = change_of(value, literals[k][lane] > 0);
      }
      has_literals[k][lane] = literals[k][lane] > 0;
    }
    literal_size[lane] = literals[0][lane] + literals[1][lane];
    size[lane] = literal_size[lane] + match[0][lane] + match[1][lane];
    const Repeats pair = composed(changes[1], changes[0]);
    for (int k = 0; k < 3; ++k) {
      first[k][lane] = changes[0].offset[k];
      both[k][lane] = pair.offset[k];
    }
  });
  if (ballot(damaged) != 0) return false;
  scan_repeats(both);
  const Lanes<std::uint32_t> sizes = inclusive_scan(size), literal_sums = inclusive_scan(literal_size);
  const std::uint32_t total = value_of(sizes, kLanes - 1), total_literals = value_of(literal_sums, kLanes - 1);
  if (total > block.size - progress.size || total_literals > block.literal_size - progress.literals) return false;
  const std::uint32_t with_literals[2] = {ballot(has_literals[0]), ballot(has_literals[1])};
  const Lanes<std::uint32_t> before[3] = {from_below(both[0], 1), from_below(both[1], 1), from_below(both[2], 1)};
  each_lane([&](int lane) {
    // Each sequence makes a run, and another one if it has literals.
    std::uint32_t number = progress.runs + static_cast<std::uint32_t>(2 * lane + bits_in(with_literals[0] & lanes_below(lane)) +
                                                                      bits_in(with_literals[1] & lanes_below(lane)));
    std::uint32_t start = progress.size + sizes[lane] - size[lane];
    std::uint32_t literal = progress.literals + literal_sums[lane] - literal_size[lane];
    const Repeats entering = lane > 0 ? Repeats{{before[0][lane], before[1][lane], before[2][lane]}} : same_repeats();
    for (int k = 0; k < 2; ++k) {
      if (static_cast<std::uint32_t>(2 * lane + k) >= count) return;
      const std::uint32_t offset = k == 0 ? resolved(first[0][lane], entering) : both[0][lane];
      if (literals[k][lane] > 0) {
        writer.write(number++, start, literals[k][lane], kLiteralRun | literal);
        start += literals[k][lane];
        literal += literals[k][lane];
      }
      writer.write(number++, start, match[k][lane], resolved(offset, progress.repeats));
      start += match[k][lane];
    }
  });
  progress.size += total;
  progress.literals += total_literals;
  progress.runs += count + static_cast<std::uint32_t>(bits_in(with_literals[0]) + bits_in(with_literals[1]));
  const Repeats change{{value_of(both[0], kLanes - 1), value_of(both[1], kLanes - 1), value_of(both[2], kLanes - 1)}};
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
          if (!write_sequences(shared, notes, block, left < kNoted ? left : kNoted, writer, progress)) return true;
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

#pragma once
// The chain of states of a Zstandard block's sequences (RFC 8878, 3.1.1.3.2 and 4.1).
//
// The next state of the three tables depends on the bits after the previous sequence's, so one lane
// follows a chain and does nothing else: three lookups; two shifts past the extra bits, the first
// by the offset's while the other two are added, and one or two more to the bits of each state;
// noting for each sequence the states and where its bits start. The position of the next bits is
// one sum, known before the next states are. A chain waits for a third of its 40 instructions, so a
// warp follows several chains, a lane each, at the price of one. Other warps bring the tables and
// the coming part of the bit stream to shared memory.

#include "gpu/kernels/fse.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

inline constexpr int kChains = 4;  // blocks that are decoded together
inline constexpr int kNoted = 56;  // sequences of each between two barriers
/// Words of the bit stream that these sequences can take, at 89 bits each, and the words around
/// both ends.
inline constexpr int kNotedWords = kNoted * 89 / 32 + 4;
inline constexpr int kStagedWords =
    512;  // a ring: the words of the previous, this and the next notes
static_assert(kStagedWords > 3 * kNotedWords + 4);
inline constexpr int kMirrored = 2;
inline constexpr std::uint32_t kRle = 0xffu;  // instead of an accuracy: the table has one symbol

/// The chain's record of one sequence.
struct alignas(8) SequenceNote {
  std::uint32_t states;  // literal length | offset << 9 | match length << 17
  int at;                // the bit below which its extra bits are
};

/// A word of the bit stream and the one before it, which are loaded together.
struct alignas(8) StagedWord {
  std::uint32_t before, word;
};

/// One block's chain.
struct SequenceChain {
  StagedWord staged[kMirrored + kStagedWords];  // the last words also stand before the first
  SequenceNote notes[2][kNoted];                // of the previous round and of this one
  std::uint32_t literal_lengths[512], match_lengths[512], offsets[256];
  std::uint8_t literal_symbols[512], match_symbols[512], offset_symbols[256];
  FseCounts counts[4];
  FseScratch scratch;
  std::uint32_t damaged;
  std::uint32_t bits_begin;  // of the bit stream in the section
  std::uint32_t count;       // sequences
  std::uint32_t state[3];    // between rounds
  int at[2];                 // where even and odd rounds begin

  BATCHFS_GPU std::uint32_t* table(int code) {
    return code == kLiteralLengths ? literal_lengths : code == kOffsets ? offsets : match_lengths;
  }
  BATCHFS_GPU std::uint8_t* symbols(int code) {
    return code == kLiteralLengths ? literal_symbols
           : code == kOffsets      ? offset_symbols
                                   : match_symbols;
  }
};

BATCHFS_GPU_TABLE std::int8_t kDefaultLiteralLengths[36] = {4, 3, 2, 2, 2, 2, 2, 2, 2,  2,  2,  2,
                                                            2, 1, 1, 1, 2, 2, 2, 2, 2,  2,  2,  2,
                                                            2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
BATCHFS_GPU_TABLE std::int8_t kDefaultOffsets[29] = {
    1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
BATCHFS_GPU_TABLE std::int8_t kDefaultMatchLengths[53] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
/// Base values of the codes with extra bits, and the numbers of these bits.
BATCHFS_GPU_TABLE std::uint32_t kLiteralLengthBase[20] = {
    16,  18,  20,  22,   24,   28,   32,   40,    48,    64,
    128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
BATCHFS_GPU_TABLE std::uint8_t kLiteralLengthExtra[20] = {1, 1, 1, 1,  2,  2,  3,  3,  4,  6,
                                                          7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
BATCHFS_GPU_TABLE std::uint32_t kMatchLengthBase[21] = {
    35,  37,  39,  41,   43,   47,   51,   59,    67,    83,   99,
    131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};
BATCHFS_GPU_TABLE std::uint8_t kMatchLengthExtra[21] = {1, 1, 1, 1,  2,  2,  3,  3,  4,  4, 5,
                                                        7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

BATCHFS_GPU std::uint32_t codes(int code) {
  return code == kLiteralLengths ? 36 : code == kOffsets ? 32 : 53;
}

BATCHFS_GPU std::uint32_t extra_bits(int code, std::uint32_t symbol) {
  if (code == kLiteralLengths) return symbol < 16 ? 0 : kLiteralLengthExtra[symbol - 16];
  if (code == kMatchLengths) return symbol < 32 ? 0 : kMatchLengthExtra[symbol - 32];
  return symbol;
}

/// Reads the distribution of `code` from the section of the block that defines it, by one lane;
/// with code 3, skips all three. Returns where it ends in the section, 0 for damage.
BATCHFS_GPU std::uint32_t find_counts(const std::uint8_t* section, std::uint32_t size, int code,
                                      FseCounts& counts) {
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
          at < size ? read_counts(section + at, size - at, i == kOffsets ? 8 : 9, codes(i), counts)
                    : 0;
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

/// Loads the three tables of `block` and finds its bit stream, by a warp.
BATCHFS_GPU bool load_tables(SequenceChain& chain, const Work& work, const ZstdBlock& block) {
  each_lane([&](int lane) {
    if (lane == 0) chain.damaged = 0;
  });
  sync_lanes();
  each_lane([&](int lane) {
    if (lane > 3) return;
    if (lane < 3 && block.tables[lane] == kDefaultTable) {
      default_counts(lane, chain.counts[lane]);
      return;
    }
    const ZstdBlock& from = lane < 3 ? work.zstd_blocks[block.tables[lane]] : block;
    const std::uint32_t end =
        find_counts(work.source + from.sequences, from.sequences_size, lane, chain.counts[lane]);
    if (end == 0) chain.damaged = 1;
    if (lane == 3) chain.bits_begin = end;
  });
  sync_lanes();
  if (chain.damaged != 0) return false;
  for (int code = 0; code < 3; ++code) {
    if (chain.counts[code].accuracy != kRle) {
      build_table(chain.counts[code], chain.scratch, chain.table(code), chain.symbols(code),
                  [&](std::uint32_t symbol) { return extra_bits(code, symbol); });
      continue;
    }
    each_lane([&](int lane) {
      if (lane != 0) return;
      const auto symbol = static_cast<std::uint32_t>(chain.counts[code].count[0]);
      chain.symbols(code)[0] = static_cast<std::uint8_t>(symbol);
      chain.table(code)[0] = FseEntry::packed(0, 0, extra_bits(code, symbol));
    });
  }
  sync_lanes();
  return true;
}

/// The part of the bit stream that is in shared memory.
struct Staged {
  const StagedWord* words;

  /// Two words before it can be read from here, too.
  BATCHFS_GPU const StagedWord* at_word(int index) const {
    return words + kMirrored + (index & (kStagedWords - 1));
  }
  /// The `count` bits (below 32) from bit `at` on.
  BATCHFS_GPU std::uint32_t bits(int at, std::uint32_t count) const {
    const StagedWord end = *at_word((at >> 5) + 1);
    return funnel(end.before, end.word, static_cast<unsigned>(at)) & ((1u << count) - 1);
  }
};

/// Words of the stream on their way to shared memory, while a warp does something else.
struct StagedAhead {
  static constexpr int kStrips = (kNotedWords + kLanes - 1) / kLanes;

  Lanes<std::uint32_t> strip[kStrips];
  int first = 0, last = 0;
};

/// Starts loading words [first, last), kNotedWords at most, by a warp.
BATCHFS_GPU void stage_ahead(StagedAhead& ahead, const std::uint8_t* bytes, std::uint32_t size,
                             int first, int last) {
  ahead.first = first;
  ahead.last = last;
  for (int k = 0; k < StagedAhead::kStrips; ++k)
    each_lane([&](int lane) {
      const int i = first + k * kLanes + lane;
      if (i < last) ahead.strip[k][lane] = stream_word(bytes, size, i);
    });
}

/// Stores the loaded words in shared memory.
BATCHFS_GPU void stage(SequenceChain& chain, const StagedAhead& ahead) {
  const auto put = [&](int place, auto set) {
    set(chain.staged[kMirrored + place]);
    if (place >= kStagedWords - kMirrored) set(chain.staged[kMirrored + place - kStagedWords]);
  };
  for (int k = 0; k < StagedAhead::kStrips; ++k)
    each_lane([&](int lane) {
      const int i = ahead.first + k * kLanes + lane;
      if (i >= ahead.last) return;
      const std::uint32_t word = ahead.strip[k][lane];
      put(i & (kStagedWords - 1), [&](StagedWord& staged) { staged.word = word; });
      put((i + 1) & (kStagedWords - 1), [&](StagedWord& staged) { staged.before = word; });
    });
}

/// Where the bit stream of `block` lies: after the table descriptions.
struct SequenceBits {
  const std::uint8_t* bytes;
  std::uint32_t size;
};

BATCHFS_GPU SequenceBits bits_of(const SequenceChain& chain, const Work& work,
                                 const ZstdBlock& block) {
  return {work.source + block.sequences + chain.bits_begin,
          block.sequences_size - chain.bits_begin};
}

/// Loads the tables and begins the chain, by a warp. Returns false for damage.
BATCHFS_GPU bool begin_states(SequenceChain& chain, const Work& work, const ZstdBlock& block) {
  if (!load_tables(chain, work, block) || chain.bits_begin >= block.sequences_size) return false;
  const auto [bytes, size] = bits_of(chain, work, block);
  const int start = backward_start(bytes, size);
  if (start < 0) return false;
  int at = start;
  std::uint32_t states[3];
  for (int code = 0; code < 3; ++code) {
    const std::uint32_t accuracy =
        chain.counts[code].accuracy == kRle ? 0 : chain.counts[code].accuracy;
    at -= static_cast<int>(accuracy);
    states[code] = stream_bits(bytes, size, at, accuracy);
  }
  each_lane([&](int lane) {
    if (lane != 0) return;
    for (int code = 0; code < 3; ++code) chain.state[code] = states[code];
    chain.at[0] = at;
  });
  StagedAhead words;
  stage_ahead(words, bytes, size, (at >> 5) - kNotedWords, at >> 5);
  stage(chain, words);
  stage_ahead(words, bytes, size, at >> 5, (at >> 5) + 2);
  stage(chain, words);
  return true;
}

/// Follows the chain through round `round` of its sequences, by one lane.
BATCHFS_GPU void follow_states(SequenceChain& chain, std::uint32_t round) {
  if (round * kNoted >= chain.count) return;
  const std::uint32_t left = chain.count - round * kNoted;
  const bool last = left <= kNoted;
  const std::uint32_t followed = last ? left - 1 : kNoted;
  SequenceNote* notes = chain.notes[round % 2];
  const Staged staged{chain.staged};
  std::uint32_t literal = chain.state[kLiteralLengths], offset = chain.state[kOffsets],
                match = chain.state[kMatchLengths];
  int at = chain.at[round % 2];
  const std::uint32_t *literal_at = chain.literal_lengths + literal,
                      *offset_at = chain.offsets + offset, *match_at = chain.match_lengths + match;
  for (std::uint32_t i = 0; i < followed; ++i) {
    const std::uint32_t l = *literal_at, m = *match_at, o = *offset_at, lengths = l + m;
    const StagedWord* word = staged.at_word(at >> 5);
    const StagedWord upper = word[0], lower = word[-2];
    const auto shift = static_cast<unsigned>(at);
    const std::uint32_t high = funnel(upper.before, upper.word, shift),
                        middle = funnel(lower.word, upper.before, shift),
                        low = funnel(lower.before, lower.word, shift);
    notes[i] = {literal | offset << 9 | match << 17, at};
    at -= static_cast<int>(FseEntry::taken(lengths + o));
    // Two lengths have 32 extra bits only where they do not fit a block, which write_sequences
    // refuses.
    const std::uint32_t bits =
        funnel_left(funnel_left(low, middle, o), funnel_left(middle, high, o), lengths);
    const unsigned of_literal = l >> FseEntry::kBits, of_lengths = lengths >> FseEntry::kBits;
    const std::uint32_t more_literal = top_bits(bits, of_literal),
                        more_match =
                            top_bits(funnel_left(0, bits, of_literal), m >> FseEntry::kBits),
                        more_offset =
                            top_bits(funnel_left(0, bits, of_lengths), o >> FseEntry::kBits);
    literal_at = FseEntry::next(chain.literal_lengths, l, more_literal);
    match_at = FseEntry::next(chain.match_lengths, m, more_match);
    offset_at = FseEntry::next(chain.offsets, o, more_offset);
    literal = FseEntry::next(l) + more_literal;
    match = FseEntry::next(m) + more_match;
    offset = FseEntry::next(o) + more_offset;
  }
  if (last) {  // it has extra bits, but no next states
    notes[followed] = {literal | offset << 9 | match << 17, at};
    at -= static_cast<int>(FseEntry::extra(*literal_at) + FseEntry::extra(*offset_at) +
                           FseEntry::extra(*match_at));
  }
  chain.state[kLiteralLengths] = literal;
  chain.state[kOffsets] = offset;
  chain.state[kMatchLengths] = match;
  chain.at[(round + 1) % 2] = at;
}

}  // namespace batchfs::gpu

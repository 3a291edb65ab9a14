#pragma once
// The sequences section of a Zstandard block (RFC 8878, 3.1.1.3.2 and 3.1.1.4): from a bit stream
// to runs.
//
// Parallelism: across blocks, and within one block for all but the chain of states. A block of
// threads decodes kChains blocks together: its first warp follows their chains
// (sequence_states.cuh), and each of the others turns the notes that one chain made in the previous
// round into runs (each lane extracts lengths and offset, scans give positions and repeated
// offsets) and brings the coming part of its bit stream to shared memory. A barrier for each round,
// of kNoted sequences, keeps them in step.

#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/repeat.cuh"
#include "gpu/kernels/sequence_states.cuh"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// Base values of the lengths of literals and of matches, by symbol.
struct LengthBases {
  std::uint32_t literal[36], match[53];
};

struct SequencesShared {
  SequenceChain chains[kChains];
  LengthBases bases;
};

/// Fills `bases`, by a warp.
BATCHFS_GPU void load_bases(LengthBases& bases) {
  each_lane([&](int lane) {
    for (auto s = static_cast<std::uint32_t>(lane); s < 36; s += kLanes)
      bases.literal[s] = s < 16 ? s : kLiteralLengthBase[s - 16];
    for (auto s = static_cast<std::uint32_t>(lane); s < 53; s += kLanes)
      bases.match[s] = s < 32 ? s + 3 : kMatchLengthBase[s - 32];
  });
}

/// The change that each lane's sequence and all before it make together.
BATCHFS_GPU void scan_repeats(Lanes<std::uint32_t> (&offsets)[3]) {
  for (int distance = 1; distance < kLanes; distance *= 2) {
    Lanes<std::uint32_t> below[3];
    for (int k = 0; k < 3; ++k) below[k] = from_below(offsets[k], distance);
    each_lane([&](int lane) {
      if (lane < distance) return;
      const Repeats change{{offsets[0][lane], offsets[1][lane], offsets[2][lane]}};
      const Repeats both =
          composed(change, Repeats{{below[0][lane], below[1][lane], below[2][lane]}});
      for (int k = 0; k < 3; ++k) offsets[k][lane] = both.offset[k];
    });
  }
}

/// How far a block's runs are written.
struct BlockProgress {
  std::uint32_t size = 0, literals = 0, runs = 0;
  Repeats repeats;
};

/// Turns the notes of `count` sequences, two for each lane, into runs, by a warp.
BATCHFS_GPU bool write_sequences(const LengthBases& bases, const SequenceChain& chain,
                                 const SequenceNote* notes, std::uint32_t count,
                                 const ZstdBlock& block, const RunWriter& writer,
                                 BlockProgress& progress) {
  static_assert(kNoted <= 2 * kLanes);
  const Staged staged{chain.staged};
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
        const std::uint32_t literal_state = states & 0x1ff, match_state = states >> 17;
        // An offset's code is the number of its extra bits.
        const std::uint32_t o = FseEntry::extra(chain.offsets[states >> 9 & 0xff]),
                            m = FseEntry::extra(chain.match_lengths[match_state]),
                            l = FseEntry::extra(chain.literal_lengths[literal_state]);
        int at = notes[i].at - static_cast<int>(o);
        const std::uint32_t value = (1u << o) + staged.bits(at, o);
        at -= static_cast<int>(m);
        match[k][lane] = bases.match[chain.match_symbols[match_state]] + staged.bits(at, m);
        at -= static_cast<int>(l);
        literals[k][lane] =
            bases.literal[chain.literal_symbols[literal_state]] + staged.bits(at, l);
        if (value > kMaxDistance)
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
  const Lanes<std::uint32_t> sizes = inclusive_scan(size),
                             literal_sums = inclusive_scan(literal_size);
  const std::uint32_t total = value_of(sizes, kLanes - 1),
                      total_literals = value_of(literal_sums, kLanes - 1);
  if (total > block.size - progress.size || total_literals > block.literal_size - progress.literals)
    return false;
  const std::uint32_t with_literals[2] = {ballot(has_literals[0]), ballot(has_literals[1])};
  const Lanes<std::uint32_t> before[3] = {from_below(both[0], 1), from_below(both[1], 1),
                                          from_below(both[2], 1)};
  each_lane([&](int lane) {
    // Each sequence makes a run, and another one if it has literals.
    std::uint32_t number =
        progress.runs +
        static_cast<std::uint32_t>(2 * lane + bits_in(with_literals[0] & lanes_below(lane)) +
                                   bits_in(with_literals[1] & lanes_below(lane)));
    std::uint32_t start = progress.size + sizes[lane] - size[lane];
    std::uint32_t literal = progress.literals + literal_sums[lane] - literal_size[lane];
    const Repeats entering =
        lane > 0 ? Repeats{{before[0][lane], before[1][lane], before[2][lane]}} : same_repeats();
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
  progress.runs +=
      count + static_cast<std::uint32_t>(bits_in(with_literals[0]) + bits_in(with_literals[1]));
  const Repeats change{{value_of(both[0], kLanes - 1), value_of(both[1], kLanes - 1),
                        value_of(both[2], kLanes - 1)}};
  progress.repeats = composed(change, progress.repeats);
  return true;
}

/// Writes the run of the literals after the last sequence, and the block's result, by a warp.
BATCHFS_GPU bool end_block(const ZstdBlock& block, const RunWriter& writer,
                           const BlockProgress& progress, ZstdBlockResult& result) {
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

/// A warp's state for the block whose runs it writes.
struct BlockWork {
  const ZstdBlock* block = nullptr;  // null: there is none
  bool good = true;
  BlockProgress progress;
  int lowest = 0;  // of the words of the bit stream that are staged
};

/// Begins the block of one chain, by a warp.
BATCHFS_GPU void begin_block(SequenceChain& chain, const Work& work, BlockWork& mine) {
  mine.progress.repeats = same_repeats();
  const bool any = mine.block != nullptr && mine.block->sequence_count > 0;
  mine.good = !any || begin_states(chain, work, *mine.block);
  each_lane([&](int lane) {
    if (lane == 0) chain.count = any && mine.good ? mine.block->sequence_count : 0;
  });
  sync_lanes();
  if (chain.count > 0) mine.lowest = (chain.at[0] >> 5) - kNotedWords;
}

/// While the chain advances through `round`: writes the runs of the previous round's notes, and
/// loads the words for the next round, by a warp.
BATCHFS_GPU void go_on(const LengthBases& bases, SequenceChain& chain, const Work& work,
                       std::uint32_t round, BlockWork& mine) {
  const std::uint32_t count = chain.count;
  StagedAhead words;
  if ((round + 1) * kNoted < count) {
    const auto [bytes, size] = bits_of(chain, work, *mine.block);
    const int first = (chain.at[round % 2] >> 5) - 2 * kNotedWords;
    stage_ahead(words, bytes, size, first, mine.lowest);
    mine.lowest = first < mine.lowest ? first : mine.lowest;
  }
  if (round > 0 && (round - 1) * kNoted < count && mine.good) {
    const std::uint32_t left = count - (round - 1) * kNoted;
    const RunWriter writer{work.runs + mine.block->runs, work.run_index + mine.block->run_index};
    mine.good = write_sequences(bases, chain, chain.notes[(round - 1) % 2],
                                left < kNoted ? left : kNoted, *mine.block, writer, mine.progress);
  }
  stage(chain, words);
}

/// Decodes the sequences of kChains blocks from `first` on, of `blocks` in all, into runs, by the
/// warps of a block of threads.
template <int kThreads>
BATCHFS_GPU void decode_sequences(SequencesShared& shared, const Work& work, std::uint32_t first,
                                  std::uint32_t blocks) {
  static_assert(kThreads == (1 + kChains) * kLanes);
  Warps<BlockWork, kThreads> warps;
  each_warp<kThreads>([&](int warp) {
    if (warp == 0) return load_bases(shared.bases);
    const std::uint32_t number = first + static_cast<std::uint32_t>(warp) - 1;
    if (number < blocks && work.zstd_blocks[number].kind == ZstdBlockKind::compressed)
      warps[warp].block = work.zstd_blocks + number;
    begin_block(shared.chains[warp - 1], work, warps[warp]);
  });
  std::uint32_t most = 0;
  for (const SequenceChain& chain : shared.chains) most = chain.count > most ? chain.count : most;
  const std::uint32_t rounds = (most + kNoted - 1) / kNoted;
  for (std::uint32_t round = 0; round <= rounds; ++round)
    each_warp<kThreads>([&](int warp) {
      if (warp > 0) return go_on(shared.bases, shared.chains[warp - 1], work, round, warps[warp]);
      each_lane([&](int lane) {
        if (lane < kChains) follow_states(shared.chains[lane], round);
      });
    });
  each_warp<kThreads>([&](int warp) {
    const ZstdBlock* block = warps[warp].block;
    if (block == nullptr) return;
    const SequenceChain& chain = shared.chains[warp - 1];
    const std::uint32_t number = first + static_cast<std::uint32_t>(warp) - 1,
                        taken = (chain.count + kNoted - 1) / kNoted;
    const RunWriter writer{work.runs + block->runs, work.run_index + block->run_index};
    const bool good = warps[warp].good && (chain.count == 0 || chain.at[taken % 2] == 0) &&
                      end_block(*block, writer, warps[warp].progress, work.zstd_results[number]);
    each_lane([&](int lane) {
      if (lane == 0 && !good) raise_to(work.status + block->chunk, kDamaged);
    });
  });
}

}  // namespace batchfs::gpu

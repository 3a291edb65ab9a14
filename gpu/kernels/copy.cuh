#pragma once
// Executes the runs of an LZ stream: the second half of LZ4 and of Zstandard decoding.
//
// Parallelism: one thread per eight bytes of output. A block of threads goes over the output tile
// by tile. First each warp spreads the runs of its next 256 bytes over the places where they begin,
// and each of its threads notes for eight bytes either the value, if it comes from the literals or
// from before the tile, or the earlier position in the tile that the byte equals. After a barrier
// each thread follows the positions of its eight bytes to values and writes back its progress, so
// that chains halve as they are followed: a tile costs the same whether its matches depend on one
// another or not. Executing sequences in order, or in rounds of independent ones, cannot achieve
// this. A position only ever points below itself, so bytes need no order among themselves.
//
// Distances that reach before the stream are refused here, because only here it is known where a
// run's distance leads (Zstandard's repeated offsets).

#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/repeat.cuh"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// A tile of output in shared memory: per byte a value (kKnown set) or the position in the tile it
/// equals.
template <int kThreads, int kTile>
struct CopyShared {
  alignas(16) std::uint16_t bytes[kTile];
  alignas(16) std::uint32_t shifts[kThreads / kLanes][kIndexed];  // of each warp: where runs begin
};

inline constexpr std::uint32_t kKnown = 0x8000;

/// The runs of a stream, or of one block of a frame.
struct Runs {
  const Run* runs = nullptr;
  std::uint32_t count = 0;
  const std::uint32_t* index = nullptr;
  const std::uint8_t* literals = nullptr;
  std::uint32_t size = 0;  // output bytes
  Repeats repeats;         // the offsets that repeats refer to
};

/// Where runs and their index are written.
struct RunWriter {
  Run* runs;
  std::uint32_t* index;

  BATCHFS_GPU void write(std::uint32_t number, std::uint32_t start, std::uint32_t size,
                         std::uint32_t from) const {
    runs[number] = Run{start, from};
    for (std::uint32_t i = (start + kIndexed - 1) / kIndexed;
         std::uint64_t{i} * kIndexed < start + size; ++i)
      index[i] = number;
  }
};

inline constexpr std::uint32_t kAtOnce = 8;  // bytes that a thread fills or settles together
static_assert(kAtOnce * kLanes == kIndexed);

/// The runs of the next kIndexed bytes that a warp fills, loaded while it does something else:
/// numbers `first` to `last`, of which 64 are here.
struct RunsAhead {
  Lanes<Run> strip[2];
  std::uint32_t first = 0, last = 0;
};

BATCHFS_GPU void look_ahead(RunsAhead& ahead, const Runs& runs, std::uint32_t begin) {
  if (begin >= runs.size) return;
  ahead.first = runs.index[begin / kIndexed];
  ahead.last = runs.size - begin > kIndexed ? runs.index[begin / kIndexed + 1] : runs.count - 1;
  each_lane([&](int lane) {
    const std::uint32_t i = ahead.first + static_cast<std::uint32_t>(lane);
    if (i <= ahead.last) ahead.strip[0][lane] = runs.runs[i];
    if (i + kLanes <= ahead.last) ahead.strip[1][lane] = runs.runs[i + kLanes];
  });
}

/// How bytes of a run from `begin` on find their sources: kLiteralRun plus the offset to add to a
/// position to get the position in the literals, or the distance to subtract to get the position in
/// the output. 0 for a run that reaches before the stream.
BATCHFS_GPU std::uint32_t shift_of(const Run& run, const Repeats& repeats, std::uint32_t before,
                                   std::uint32_t begin) {
  const std::uint32_t from = resolved(run.from, repeats);
  if (from & kLiteralRun) return kLiteralRun | ((from - run.start) & ~kLiteralRun);
  if (from > before + run.start) return 0;
  // A match that overlaps itself repeats: go back before it, by as many distances as that takes.
  const std::uint32_t past = begin > run.start ? begin - run.start : 0;
  return past >= from && from != 0 ? from * (past / from + 1) : from;
}

/// Fills the bytes from `begin`, a multiple of kIndexed, to `end`, at most kIndexed further, of the
/// tile that starts at `tile`. `before`: bytes of the stream before byte 0 of these runs, at out -
/// before. `shifts` are all 0 before and after. Returns whether a run reached before the stream.
BATCHFS_GPU bool fill_tile(std::uint16_t* bytes, std::uint32_t* shifts, const Runs& runs,
                           const RunsAhead& ahead, const std::uint8_t* out, std::uint32_t before,
                           std::uint32_t tile, std::uint32_t begin, std::uint32_t end) {
  // Put each run's shift where it begins.
  Lanes<bool> refused;
  Lanes<std::uint32_t> entering;  // the shift of the run that holds `begin`: lane 0's
  each_lane([&](int lane) {
    refused[lane] = false;
    entering[lane] = 0;
    const auto put = [&](const Run& run) {
      const std::uint32_t shift = shift_of(run, runs.repeats, before, begin);
      if (shift == 0) refused[lane] = true;
      if (run.start <= begin)
        entering[lane] = shift;
      else if (run.start - begin < kIndexed)  // the last may be the first of the next call
        shifts[run.start - begin] = shift;
    };
    std::uint32_t i = ahead.first + static_cast<std::uint32_t>(lane);
    if (i <= ahead.last) put(ahead.strip[0][lane]);
    if (i + kLanes <= ahead.last) put(ahead.strip[1][lane]);
    for (i += 2 * kLanes; i <= ahead.last; i += kLanes) put(runs.runs[i]);
  });
  const bool any_refused = ballot(refused) != 0;
  sync_lanes();

  // Each lane takes its eight, and the shift in force before them from the last lane with one.
  Lanes<FourWords> low, high;
  Lanes<std::uint32_t> latest;
  Lanes<bool> has;
  each_lane([&](int lane) {
    std::uint32_t* mine = shifts + kAtOnce * static_cast<std::uint32_t>(lane);
    low[lane] = load_four(mine);
    high[lane] = load_four(mine + 4);
    store_four(mine, FourWords{});
    store_four(mine + 4, FourWords{});
    std::uint32_t shift = 0;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t here = i < 4 ? low[lane].word[i % 4] : high[lane].word[i % 4];
      shift = here != 0 ? here : shift;
    }
    latest[lane] = shift;
    has[lane] = shift != 0;
  });
  const std::uint32_t having = ballot(has);
  Lanes<int> giver;
  each_lane([&](int lane) {
    const std::uint32_t below = having & lanes_below(lane);
    giver[lane] = below != 0 ? top_bit(below) : 0;
  });
  const Lanes<std::uint32_t> given = shuffle(latest, giver);
  const std::uint32_t first_shift = value_of(entering, 0);
  each_lane([&](int lane) {
    const std::uint32_t at = begin + kAtOnce * static_cast<std::uint32_t>(lane);
    if (at >= end) return;
    std::uint32_t shift = (having & lanes_below(lane)) != 0 ? given[lane] : first_shift;
    std::uint32_t entries[kAtOnce];
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t here = i < 4 ? low[lane].word[i % 4] : high[lane].word[i % 4];
      shift = here != 0 ? here : shift;
      const bool literal = (shift & kLiteralRun) != 0;
      const auto source =
          static_cast<std::int32_t>(literal ? (at + i + shift) & ~kLiteralRun : at + i - shift);
      entries[i] = kKnown;
      // a refused run has no shift, and the previous run's does not apply
      if (any_refused) continue;
      if (!literal && source >= static_cast<std::int32_t>(tile))
        entries[i] = static_cast<std::uint32_t>(source) - tile;
      else if (at + i < end)
        entries[i] |= (literal ? runs.literals : out)[source];
    }
    FourWords words;
    for (std::uint32_t i = 0; i < kAtOnce / 2; ++i)
      words.word[i] = entries[2 * i] | entries[2 * i + 1] << 16;
    store_four(bytes + (at - tile), words);
  });
  sync_lanes();
  return any_refused;
}

/// Follows the bytes from `at` of the tile on to their values and writes those below `size` to out.
BATCHFS_GPU void settle(std::uint16_t* tile, std::uint32_t at, std::uint32_t size,
                        std::uint8_t* out) {
  const volatile std::uint16_t* bytes = tile;  // other threads shorten the chains meanwhile
  FourWords words = load_four(tile + at);
  std::uint32_t entries[kAtOnce];
  for (std::uint32_t i = 0; i < kAtOnce; ++i)
    entries[i] = words.word[i / 2] >> (16 * (i % 2)) & 0xffff;
  while ((words.word[0] & words.word[1] & words.word[2] & words.word[3] & 0x80008000u) !=
         0x80008000u) {
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
      if (!(entries[i] & kKnown)) entries[i] = bytes[entries[i]];
    for (std::uint32_t i = 0; i < kAtOnce / 2; ++i)
      words.word[i] = entries[2 * i] | entries[2 * i + 1] << 16;
    store_four(tile + at, words);
  }
  const std::uint32_t low = pick_bytes(words.word[0], words.word[1], 0x6420),
                      high = pick_bytes(words.word[2], words.word[3], 0x6420);
  if (size - at >= kAtOnce && reinterpret_cast<std::uintptr_t>(out + at) % 8 == 0) {
    *reinterpret_cast<std::uint64_t*>(out + at) = std::uint64_t{high} << 32 | low;
  } else {
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
      if (at + i < size)
        out[at + i] = static_cast<std::uint8_t>((i < 4 ? low : high) >> (8 * (i % 4)));
  }
}

/// Writes out[0, runs.size). Returns false when a run reaches before the stream.
template <int kThreads, int kTile>
BATCHFS_GPU bool copy_runs(CopyShared<kThreads, kTile>& shared, const Runs& runs, std::uint8_t* out,
                           std::uint32_t before) {
  static_assert(kTile % (kThreads * kAtOnce) == 0 && kTile <= 0x8000);
  constexpr std::uint32_t kTogether =
      kThreads * kAtOnce;  // bytes that the block's warps fill at once
  Threads<bool, kThreads> refused;
  Warps<RunsAhead, kThreads> ahead;
  each_warp<kThreads>([&](int warp) {
    each_lane([&](int lane) {
      refused[warp * kLanes + lane] = false;
      for (std::uint32_t i = static_cast<std::uint32_t>(lane); i < kIndexed; i += kLanes)
        shared.shifts[warp][i] = 0;
    });
    look_ahead(ahead[warp], runs, static_cast<std::uint32_t>(warp) * kIndexed);
    sync_lanes();
  });
  for (std::uint32_t tile = 0; tile < runs.size; tile += kTile) {
    const std::uint32_t size = runs.size - tile < kTile ? runs.size - tile : kTile;
    each_warp<kThreads>([&](int warp) {
      for (std::uint32_t begin = static_cast<std::uint32_t>(warp) * kIndexed; begin < size;
           begin += kTogether) {
        const std::uint32_t end = begin + kIndexed < size ? begin + kIndexed : size;
        if (fill_tile(shared.bytes, shared.shifts[warp], runs, ahead[warp], out, before, tile,
                      tile + begin, tile + end))
          each_lane([&](int lane) { refused[warp * kLanes + lane] = true; });
        look_ahead(ahead[warp], runs, tile + begin + kTogether);
      }
    });
    each_thread<kThreads>([&](int thread) {
      for (std::uint32_t at = kAtOnce * static_cast<std::uint32_t>(thread); at < size;
           at += kTogether)
        settle(shared.bytes, at, size, out + tile);
    });
  }
  return !any_thread<kThreads>(refused);
}

BATCHFS_GPU void store_u32(std::uint8_t* at, std::uint32_t word) {
  if (reinterpret_cast<std::uintptr_t>(at) % 4 == 0) {
    *reinterpret_cast<std::uint32_t*>(at) = word;
  } else {
    for (int i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(word >> (8 * i));
  }
}

/// Copies bytes [begin, end) unchanged.
template <int kThreads>
BATCHFS_GPU void copy_stretch(const std::uint8_t* from, std::uint8_t* to, std::uint32_t begin,
                              std::uint32_t end) {
  each_thread<kThreads>([&](int thread) {
    for (std::uint32_t i = begin + 4 * static_cast<std::uint32_t>(thread); i < end;
         i += 4 * kThreads) {
      if (end - i >= 4)
        store_u32(to + i, load_u32(from + i));
      else
        for (std::uint32_t k = i; k < end; ++k) to[k] = from[k];
    }
  });
}

}  // namespace batchfs::gpu

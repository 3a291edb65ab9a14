#pragma once
// Executes the runs of an LZ stream: the second half of LZ4 and of Zstandard decoding.
//
// What is parallel: every byte. A block of threads goes over the output tile by tile. First each thread finds
// the run of its next eight bytes and goes along the runs, and notes for each byte either its value, when
// that comes from the literals or from before the tile, or the earlier position in the tile that it equals.
// After a barrier each thread follows the positions of its eight bytes to values, writing back how far they
// got, so that chains halve as they are followed: a tile costs the same whether its matches depend on one
// another or not, which is what executing sequences in order, or in rounds of independent ones, cannot
// give. A position only ever points below itself, so bytes need no order among themselves.
//
// Distances that reach before the stream are refused here, because only here it is known (Zstandard's
// repeated offsets) where a run's distance leads.

#include "gpu/device.h"
#include "gpu/repeat.cuh"
#include "gpu/tables.h"

namespace batchfs::gpu {

/// A tile of output in shared memory: per byte a value (kKnown set) or the position in the tile it equals.
template <int kTile>
struct CopyShared {
  alignas(16) std::uint16_t bytes[kTile];
};

inline constexpr std::uint32_t kKnown = 0x8000;

/// The runs of a stream, or of one block of a frame.
struct Runs {
  const Run* runs = nullptr;
  std::uint32_t count = 0;
  const std::uint32_t* index = nullptr;
  const std::uint8_t* literals = nullptr;
  std::uint32_t size = 0;  // output bytes
  Repeats repeats;         // what repeated offsets stand for
};

/// Where runs and their index are written.
struct RunWriter {
  Run* runs;
  std::uint32_t* index;

  BATCHFS_GPU void write(std::uint32_t number, std::uint32_t start, std::uint32_t size, std::uint32_t from) const {
    runs[number] = Run{start, from};
    for (std::uint32_t i = (start + kIndexed - 1) / kIndexed; std::uint64_t{i} * kIndexed < start + size; ++i)
      index[i] = number;
  }
};

inline constexpr std::uint32_t kAtOnce = 8;  // bytes that a thread fills or settles together
static_assert(kAtOnce * kLanes == kIndexed);

/// Goes along a run: where its next byte comes from.
struct RunCursor {
  const std::uint8_t* base;  // the literals, or the output
  std::int32_t at;           // of the next byte, in `base`
  std::int32_t wrap;         // where a match that overlaps itself starts over, `back` bytes before
  std::int32_t back;
  std::int32_t in_tile;      // from here on a source is in the tile
};

/// A cursor at byte `past` of `run`. A run that reaches before the stream is refused: its bytes are then the
/// first one of the run table.
BATCHFS_GPU RunCursor cursor_at(const Runs& runs, const Run& run, std::uint32_t past, const std::uint8_t* out,
                                std::uint32_t before, std::uint32_t tile, bool& refused) {
  constexpr std::int32_t kNever = 0x7fffffff;
  const std::uint32_t from = resolved(run.from, runs.repeats);
  if (from & kLiteralRun)
    return {runs.literals, static_cast<std::int32_t>((from & ~kLiteralRun) + past), kNever, 0, kNever};
  if (from == 0 || from > before + run.start) {
    refused = true;
    return {reinterpret_cast<const std::uint8_t*>(runs.runs), 0, 1, 1, kNever};
  }
  if (past >= from) past %= from;
  const auto start = static_cast<std::int32_t>(run.start), back = static_cast<std::int32_t>(from);
  return {out, start - back + static_cast<std::int32_t>(past), start, back, static_cast<std::int32_t>(tile)};
}

/// Fills bytes [begin, end) of the tile that starts at `tile`; at most kIndexed bytes, from a multiple of
/// kIndexed on. `before` is how many bytes of the stream lie before byte 0 of these runs, at out - before.
/// Says whether a run reached before them.
template <int kTile>
BATCHFS_GPU bool fill_tile(CopyShared<kTile>& shared, const Runs& runs, const std::uint8_t* out,
                           std::uint32_t before, std::uint32_t tile, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t first = runs.index[begin / kIndexed];
  const std::uint32_t past_last = end < runs.size ? runs.index[begin / kIndexed + 1] + 1 : runs.count;
  Lanes<bool> any_refused;
  each_lane([&](int lane) {
    const std::uint32_t at = begin + kAtOnce * static_cast<std::uint32_t>(lane);
    bool refused = false;
    if (at < end) {
      std::uint32_t low = first, high = past_last;  // the last run that starts at or before `at`
      while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (runs.runs[middle].start <= at ? low : high) = middle;
      }
      const Run none{0xffffffffu, kLiteralRun};
      const Run run = runs.runs[low];
      Run next = low + 1 < runs.count ? runs.runs[low + 1] : none;
      RunCursor cursor = cursor_at(runs, run, at - run.start, out, before, tile, refused);
      std::uint32_t entries[kAtOnce];
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        if (at + i == next.start) {
          cursor = cursor_at(runs, next, 0, out, before, tile, refused);
          ++low;
          next = low + 1 < runs.count ? runs.runs[low + 1] : none;
        }
        entries[i] = kKnown;
        if (at + i < end)
          entries[i] = cursor.at >= cursor.in_tile ? static_cast<std::uint32_t>(cursor.at - cursor.in_tile)
                                                   : kKnown | cursor.base[cursor.at];
        ++cursor.at;
        if (cursor.at == cursor.wrap) cursor.at -= cursor.back;
      }
      FourWords words;
      for (std::uint32_t i = 0; i < kAtOnce / 2; ++i) words.word[i] = entries[2 * i] | entries[2 * i + 1] << 16;
      store_four(&shared.bytes[at - tile], words);
    }
    any_refused[lane] = refused;
  });
  return ballot(any_refused) != 0;
}

/// Follows the bytes from `at` of the tile on to their values and writes those below `size` to out.
template <int kTile>
BATCHFS_GPU void settle(CopyShared<kTile>& shared, std::uint32_t at, std::uint32_t size, std::uint8_t* out) {
  const volatile std::uint16_t* bytes = shared.bytes;  // other threads shorten the way meanwhile
  FourWords words = load_four(&shared.bytes[at]);
  std::uint32_t entries[kAtOnce];
  for (std::uint32_t i = 0; i < kAtOnce; ++i) entries[i] = words.word[i / 2] >> (16 * (i % 2)) & 0xffff;
  while ((words.word[0] & words.word[1] & words.word[2] & words.word[3] & 0x80008000u) != 0x80008000u) {
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
      if (!(entries[i] & kKnown)) entries[i] = bytes[entries[i]];
    for (std::uint32_t i = 0; i < kAtOnce / 2; ++i) words.word[i] = entries[2 * i] | entries[2 * i + 1] << 16;
    store_four(&shared.bytes[at], words);
  }
  const std::uint32_t low = pick_bytes(words.word[0], words.word[1], 0x6420),
                      high = pick_bytes(words.word[2], words.word[3], 0x6420);
  if (size - at >= kAtOnce && reinterpret_cast<std::uintptr_t>(out + at) % 8 == 0) {
    *reinterpret_cast<std::uint64_t*>(out + at) = std::uint64_t{high} << 32 | low;
  } else {
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
      if (at + i < size) out[at + i] = static_cast<std::uint8_t>((i < 4 ? low : high) >> (8 * (i % 4)));
  }
}

/// Writes out[0, runs.size). Returns false when a run reaches before the stream.
template <int kThreads, int kTile>
BATCHFS_GPU bool copy_runs(CopyShared<kTile>& shared, const Runs& runs, std::uint8_t* out, std::uint32_t before) {
  static_assert(kTile % kIndexed == 0 && kTile <= 0x8000);
  Threads<bool, kThreads> refused;
  each_thread<kThreads>([&](int thread) { refused[thread] = false; });
  for (std::uint32_t tile = 0; tile < runs.size; tile += kTile) {
    const std::uint32_t size = runs.size - tile < kTile ? runs.size - tile : kTile;
    each_warp<kThreads>([&](int warp) {
      for (std::uint32_t begin = static_cast<std::uint32_t>(warp) * kIndexed; begin < size;
           begin += kThreads / kLanes * kIndexed) {
        const std::uint32_t end = begin + kIndexed < size ? begin + kIndexed : size;
        if (fill_tile(shared, runs, out, before, tile, tile + begin, tile + end))
          each_lane([&](int lane) { refused[warp * kLanes + lane] = true; });
      }
    });
    each_thread<kThreads>([&](int thread) {
      for (std::uint32_t at = kAtOnce * static_cast<std::uint32_t>(thread); at < size; at += kAtOnce * kThreads)
        settle(shared, at, size, out + tile);
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

/// Bytes [begin, end) as stored.
template <int kThreads>
BATCHFS_GPU void copy_stretch(const std::uint8_t* from, std::uint8_t* to, std::uint32_t begin, std::uint32_t end) {
  each_thread<kThreads>([&](int thread) {
    for (std::uint32_t i = begin + 4 * static_cast<std::uint32_t>(thread); i < end; i += 4 * kThreads) {
      if (end - i >= 4)
        store_u32(to + i, load_u32(from + i));
      else
        for (std::uint32_t k = i; k < end; ++k) to[k] = from[k];
    }
  });
}

}  // namespace batchfs::gpu

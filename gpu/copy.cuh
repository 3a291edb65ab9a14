#pragma once
// Executes the runs of an LZ stream: the second half of LZ4 and of Zstandard decoding.
//
// What is parallel: every byte. A block of threads goes over the output tile by tile. First each byte of
// the tile finds its run (a warp takes 32 bytes at a time and 32 runs in its registers) and from it either
// its value, when that comes from the literals or from before the tile, or the earlier position in the tile
// that it equals. After a barrier each byte follows these positions to a value, writing back how far it
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
  std::uint16_t bytes[kTile];
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

/// 32 runs in a warp's registers, from `first` on. `offset` is the place in the window of the run that
/// holds the byte before the next one; -1 is before the window.
struct RunWindow {
  Lanes<std::uint32_t> start, from;
  std::uint32_t first = 0;
  int offset = 0;
};

BATCHFS_GPU void load_window(RunWindow& window, const Runs& runs, std::uint32_t base) {
  Lanes<bool> before;
  each_lane([&](int lane) {
    const std::uint32_t i = window.first + static_cast<std::uint32_t>(lane);
    Run run{0xffffffffu, kLiteralRun};
    if (i < runs.count) run = runs.runs[i];
    window.start[lane] = run.start;
    window.from[lane] = resolved(run.from, runs.repeats);
    before[lane] = run.start < base;
  });
  window.offset = bits_in(ballot(before)) - 1;
}

/// Loads the window such that its first run holds the byte at `base`, so that it covers 32 bytes even
/// where each has a run of its own.
BATCHFS_GPU void advance_window(RunWindow& window, const Runs& runs, std::uint32_t base) {
  window.first += static_cast<std::uint32_t>(window.offset);
  load_window(window, runs, base);
  if (value_of(window.start, 1) <= base) {
    ++window.first;
    load_window(window, runs, base);
  }
}

/// Fills bytes [begin, end) of the tile that starts at `tile`; at most kIndexed bytes, from a multiple of
/// kIndexed on. `before` is how many bytes of the stream lie before byte 0 of these runs, at out - before.
/// Says whether a run reached before them.
template <int kTile>
BATCHFS_GPU bool fill_tile(CopyShared<kTile>& shared, const Runs& runs, const std::uint8_t* out,
                           std::uint32_t before, std::uint32_t tile, std::uint32_t begin, std::uint32_t end) {
  RunWindow window;
  window.first = runs.index[begin / kIndexed];
  load_window(window, runs, begin);
  Lanes<bool> refused;
  each_lane([&](int lane) { refused[lane] = false; });
  for (std::uint32_t base = begin; base < end; base += kLanes) {
    if (base != begin && value_of(window.start, kLanes - 1) < base + kLanes) advance_window(window, runs, base);
    Lanes<std::uint32_t> starts;  // a bit for each byte of the 32 that begins a run
    each_lane([&](int lane) {
      const std::uint32_t at = window.start[lane] - base;
      starts[lane] = at < kLanes ? 1u << at : 0;
    });
    const std::uint32_t begun = any_of_bits(starts);
    Lanes<int> mine;
    each_lane([&](int lane) { mine[lane] = window.offset + bits_in(begun & lanes_up_to(lane)); });
    const Lanes<std::uint32_t> start = shuffle(window.start, mine);
    const Lanes<std::uint32_t> from = shuffle(window.from, mine);
    window.offset += bits_in(begun);
    each_lane([&](int lane) {
      const std::uint32_t at = base + static_cast<std::uint32_t>(lane);
      if (at >= end) return;
      std::uint32_t past = at - start[lane];
      std::uint32_t entry = kKnown;
      if (from[lane] & kLiteralRun) {
        entry |= runs.literals[(from[lane] & ~kLiteralRun) + past];
      } else if (from[lane] == 0 || from[lane] > before + start[lane]) {
        refused[lane] = true;
      } else {
        const std::uint32_t distance = from[lane];
        if (past >= distance) past %= distance;  // a match that overlaps itself repeats
        const std::int64_t source = static_cast<std::int64_t>(start[lane]) - distance + past;
        if (source >= static_cast<std::int64_t>(tile))
          entry = static_cast<std::uint32_t>(source - tile);
        else
          entry |= out[source];
      }
      shared.bytes[at - tile] = static_cast<std::uint16_t>(entry);
    });
  }
  return ballot(refused) != 0;
}

/// The value of the byte at `at` of the tile.
template <int kTile>
BATCHFS_GPU std::uint8_t settle(CopyShared<kTile>& shared, std::uint32_t at) {
  volatile std::uint16_t* bytes = shared.bytes;  // other threads shorten the way meanwhile
  std::uint32_t entry = bytes[at];
  while (!(entry & kKnown)) {
    entry = bytes[entry];
    bytes[at] = static_cast<std::uint16_t>(entry);
  }
  return static_cast<std::uint8_t>(entry);
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
      for (std::uint32_t at = static_cast<std::uint32_t>(thread); at < size; at += kThreads)
        out[tile + at] = settle(shared, at);
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

#pragma once
// A window of a deflate stream: the symbols of a block that lie in it, decoded by a block of
// threads. deflate.cuh describes how.

#include "gpu/kernels/byte_writer.cuh"
#include "gpu/kernels/checksums.cuh"
#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/deflate_codes.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// Words of a window that a thread follows. Odd numbers: then threads read from different banks.
inline constexpr std::uint32_t kMinDeflateShare = 3, kMaxDeflateShare = 15;
/// Words of the longest header of a block, and what is read past the last code.
inline constexpr std::uint32_t kDeflateHeaderWords = 160;

// The end of a walk, instead of a bit's position: after the end of the block, or where no code is.
inline constexpr std::uint32_t kBlockEnded = 1u << 31, kNoCodeHere = 0xffffffffu,
                               kNotReached = 0xffffffffu;

/// A walk over a segment.
struct DeflateWalk {
  std::uint32_t from;  // where its first symbol starts, or kNotReached
  std::uint32_t next;  // where the first symbol after the segment starts, or see above
  std::uint32_t runs;  // that its symbols make
  std::uint32_t size;  // bytes of output that they make
};

/// The symbols of a window that are decoded in one step.
struct DeflateStep {
  std::uint32_t next;  // where the following symbol starts
  std::uint32_t runs, size;
  bool ended;  // the block's end is the last of them
};

template <int kThreads, int kTile>
struct DeflateShared {
  static constexpr std::uint32_t kWindow = kThreads * kMaxDeflateShare + kDeflateHeaderWords;
  union {
    CopyShared<kThreads, kTile> copy;
    ChecksumShared<kThreads> checksum;
    std::uint32_t window[kWindow];  // input from some byte on, and zeros after its end
  } memory;
  DeflateCodes<LiteralCodes> literals;
  DeflateCodes<DistanceCodes> distances;
  DeflateCodes<LengthCodes> lengths_codes;
  std::uint8_t lengths[LiteralCodes::kSymbols + DistanceCodes::kSymbols];
  std::uint8_t lengths_lengths[LengthCodes::kSymbols];
  std::uint32_t codes_begin;     // the bit after a block's header; 0 for damage
  std::uint32_t next[kThreads];  // ends of walks
  std::uint32_t ends[2];         // in turn: kThreads less the first thread that met an end
  std::uint32_t warp_runs[kThreads / kLanes], warp_size[kThreads / kLanes];
  DeflateStep step;
  std::uint32_t damaged;
};

/// 32 bits from bit `at` of the window on.
BATCHFS_GPU std::uint32_t window_bits(const std::uint32_t* window, std::uint32_t at) {
  return funnel(window[at / 32], window[at / 32 + 1], at);
}

template <int kThreads, int kTile>
BATCHFS_GPU void load_window(DeflateShared<kThreads, kTile>& shared, const std::uint8_t* in,
                             std::uint32_t size, std::uint32_t first, std::uint32_t words) {
  each_thread<kThreads>([&](int thread) {
    for (auto i = static_cast<std::uint32_t>(thread); i < words; i += kThreads) {
      const std::uint32_t left = size - first;
      std::uint32_t word = 0;
      if (4 * i + 4 <= left)
        word = load_u32(in + first + 4 * i);
      else
        for (std::uint32_t k = 4 * i; k < left; ++k)
          word |= std::uint32_t{in[first + k]} << (8 * (k - 4 * i));
      shared.memory.window[i] = word;
    }
  });
}

/// Follows the symbols from bit `at` of the window to bit `end`, or to the end of the block.
/// Returns the end of the walk.
template <int kThreads, int kTile, class Use>
BATCHFS_GPU std::uint32_t follow(const DeflateShared<kThreads, kTile>& shared, std::uint32_t at,
                                 std::uint32_t end, Use& use) {
  while (at < end) {
    std::uint32_t bits = window_bits(shared.memory.window, at);
    const std::uint32_t entry = shared.literals.find(bits);
    at += DeflateEntry::code_size(entry);
    const DeflateEntry::Meaning meaning = DeflateEntry::meaning(entry);
    if (meaning == DeflateEntry::literal) {
      use.literal(DeflateEntry::value(entry));
      continue;
    }
    if (meaning == DeflateEntry::end_of_block) return at | kBlockEnded;
    if (meaning == DeflateEntry::no_code) return kNoCodeHere;
    const std::uint32_t size = DeflateEntry::full_value(entry, bits);
    at += DeflateEntry::extra(entry);
    bits = window_bits(shared.memory.window, at);
    const std::uint32_t distance = shared.distances.find(bits);
    if (DeflateEntry::meaning(distance) == DeflateEntry::no_code) return kNoCodeHere;
    at += DeflateEntry::code_size(distance) + DeflateEntry::extra(distance);
    use.copy(size, DeflateEntry::full_value(distance, bits));
  }
  return at;
}

struct IgnoreSymbols {
  BATCHFS_GPU void literal(std::uint32_t) {}
  BATCHFS_GPU void copy(std::uint32_t, std::uint32_t) {}
};

struct CountSymbols {
  std::uint32_t runs = 0, size = 0;
  bool in_literals = false;

  BATCHFS_GPU void literal(std::uint32_t) {
    runs += in_literals ? 0 : 1;
    in_literals = true;
    ++size;
  }
  BATCHFS_GPU void copy(std::uint32_t bytes, std::uint32_t) {
    ++runs;
    in_literals = false;
    size += bytes;
  }
};

/// Writes literals where they belong, and runs: a run of literals is a copy of the output itself.
struct WriteSymbols {
  RunWriter runs;
  std::uint8_t* out;
  std::uint32_t number, at;  // of the next run and byte
  std::uint32_t begin = 0;   // of the run of literals, if any
  bool in_literals = false;
  ByteWriter bytes;

  BATCHFS_GPU WriteSymbols(const RunWriter& writer, std::uint8_t* output, std::uint32_t first_run,
                           std::uint32_t first_byte)
      : runs(writer), out(output), number(first_run), at(first_byte), bytes(output) {}

  BATCHFS_GPU void literal(std::uint32_t byte) {
    if (!in_literals) {
      in_literals = true;
      begin = at;
      bytes = ByteWriter(out + at);
    }
    bytes.write(byte);
    ++at;
  }
  BATCHFS_GPU void copy(std::uint32_t size, std::uint32_t distance) {
    end_literals();
    runs.write(number++, at, size, distance);
    at += size;
  }
  BATCHFS_GPU void end_literals() {
    if (!in_literals) return;
    bytes.flush();
    runs.write(number++, begin, at - begin, kLiteralRun | begin);
    in_literals = false;
  }
};

template <int kThreads, int kTile>
BATCHFS_GPU DeflateWalk walk_from(const DeflateShared<kThreads, kTile>& shared, std::uint32_t from,
                                  std::uint32_t end) {
  CountSymbols counts;
  const std::uint32_t next = follow(shared, from, end, counts);
  return {from, next, counts.runs, counts.size};
}

/// The bits of a window, from `begin` to `end`, and how many of them a thread follows.
struct DeflateSegments {
  std::uint32_t begin, end, share;

  BATCHFS_GPU std::uint32_t end_of(int thread) const {
    const std::uint32_t segment_end = begin + share * (static_cast<std::uint32_t>(thread) + 1);
    return segment_end < end ? segment_end : end;
  }
};

/// Notes that a thread's walk met the end of the block, or no code.
template <int kThreads>
BATCHFS_GPU void note_end(std::uint32_t* ends, int thread, const DeflateWalk& walk) {
  if (walk.next >= kBlockEnded) raise_to(ends, static_cast<std::uint32_t>(kThreads - thread));
}

/// Finds each thread's walk: from the window's begin to the end of the block or of the segments.
/// Threads after the end get none.
template <int kThreads, int kTile>
BATCHFS_GPU void find_walks(DeflateShared<kThreads, kTile>& shared, const DeflateSegments& segments,
                            Threads<DeflateWalk, kThreads>& walks) {
  each_thread<kThreads>([&](int thread) {
    if (thread < 2) shared.ends[thread] = 0;
  });
  Threads<DeflateWalk, kThreads> guesses;
  each_thread<kThreads>([&](int thread) {
    std::uint32_t from = segments.begin;
    if (thread > 0) {
      const std::uint32_t begin = segments.end_of(thread - 1);
      IgnoreSymbols ignored;
      from =
          follow(shared, thread > 1 ? segments.end_of(thread - 2) : segments.begin, begin, ignored);
      if (from >= kBlockEnded) from = begin;
    }
    guesses[thread] = walks[thread] = walk_from(shared, from, segments.end_of(thread));
    shared.next[thread] = walks[thread].next;
    note_end<kThreads>(&shared.ends[0], thread, walks[thread]);
  });
  Threads<std::uint32_t, kThreads> starts;
  Threads<bool, kThreads> moved;
  for (std::uint32_t round = 0;; ++round) {
    // Walks up to the first end have to follow one another: then, by induction from the first, all
    // of them are true, and the end is.
    each_thread<kThreads>([&](int thread) {
      const auto first_end = kThreads - static_cast<int>(shared.ends[round % 2]);
      starts[thread] = thread == 0           ? segments.begin
                       : thread <= first_end ? shared.next[thread - 1]
                                             : kNotReached;
      moved[thread] = starts[thread] != kNotReached && starts[thread] != walks[thread].from;
      if (thread == 0) shared.ends[(round + 1) % 2] = 0;
    });
    if (!any_thread<kThreads>(moved)) break;
    each_thread<kThreads>([&](int thread) {
      if (moved[thread]) {
        walks[thread] = starts[thread] == guesses[thread].from
                            ? guesses[thread]
                            : walk_from(shared, starts[thread], segments.end_of(thread));
        shared.next[thread] = walks[thread].next;
      }
      note_end<kThreads>(&shared.ends[(round + 1) % 2], thread, walks[thread]);
    });
  }
  each_thread<kThreads>([&](int thread) {
    if (starts[thread] == kNotReached) walks[thread] = {kNotReached, kNotReached, 0, 0};
  });
}

/// Adds up the walks' runs and bytes before each thread, and finds the step: the walks up to the
/// end of the block whose runs there is room for. The step's walks stay; others become kNotReached.
template <int kThreads, int kTile>
BATCHFS_GPU void place_walks(DeflateShared<kThreads, kTile>& shared, std::uint32_t most_runs,
                             Threads<DeflateWalk, kThreads>& walks,
                             Threads<std::uint32_t, kThreads>& runs,
                             Threads<std::uint32_t, kThreads>& bytes) {
  each_warp<kThreads>([&](int warp) {
    Lanes<std::uint32_t> warp_runs, warp_size;
    each_lane([&](int lane) {
      const int thread = warp * kLanes + lane;
      warp_runs[lane] = walks[thread].runs;
      warp_size[lane] = walks[thread].size;
      if (thread == 0) shared.damaged = 0;
    });
    const Lanes<std::uint32_t> runs_sum = inclusive_scan(warp_runs),
                               size_sum = inclusive_scan(warp_size);
    each_lane([&](int lane) {
      const int thread = warp * kLanes + lane;
      runs[thread] = runs_sum[lane] - walks[thread].runs;
      bytes[thread] = size_sum[lane] - walks[thread].size;
      if (lane != kLanes - 1) return;
      shared.warp_runs[warp] = runs_sum[lane];
      shared.warp_size[warp] = size_sum[lane];
    });
  });
  each_thread<kThreads>([&](int thread) {
    for (int warp = 0; warp < thread / kLanes; ++warp) {
      runs[thread] += shared.warp_runs[warp];
      bytes[thread] += shared.warp_size[warp];
    }
    DeflateWalk& walk = walks[thread];
    if (walk.from == kNotReached) return;
    if (walk.next == kNoCodeHere) shared.damaged = 1;
    const std::uint32_t runs_after = runs[thread] + walk.runs;
    const bool last = thread == kThreads - 1 || (walk.next & kBlockEnded) != 0;
    if (runs_after > most_runs) {
      if (runs[thread] <= most_runs) shared.step = {walk.from, runs[thread], bytes[thread], false};
      walk.from = kNotReached;
    } else if (last) {
      shared.step = {walk.next & ~kBlockEnded, runs_after, bytes[thread] + walk.size,
                     (walk.next & kBlockEnded) != 0};
    }
  });
}

/// One stream's input and output, and how much of them is done.
struct DeflateProgress {
  const std::uint8_t* in;
  std::uint32_t in_size;
  std::uint32_t next;  // byte of the input
  std::uint8_t* out;
  std::uint32_t size, done;  // bytes of the output
  std::uint32_t member;      // where the part of the output begins that copies may reach back to
  RunWriter runs;
  std::uint32_t most_runs;
  std::uint32_t blocks_left;    // that may come
  std::uint32_t expected_bits;  // of the next block
};

/// Decodes a window's symbols of a block whose codes are built. `at` is the bit of the window where
/// they begin, and then the one after them; sets `ended` at the end of the block. Returns false for
/// damage.
template <int kThreads, int kTile>
BATCHFS_GPU bool decode_window(DeflateShared<kThreads, kTile>& shared, DeflateProgress& stream,
                               std::uint32_t share, std::uint32_t& at, bool& ended) {
  const std::uint64_t left = 8 * std::uint64_t{stream.in_size - stream.next};
  const std::uint32_t whole = at + share * kThreads;
  const std::uint32_t end = left < whole ? static_cast<std::uint32_t>(left) : whole;
  if (at >= end) return false;
  Threads<DeflateWalk, kThreads> walks;
  Threads<std::uint32_t, kThreads> runs, bytes;
  find_walks(shared, {at, end, share}, walks);
  place_walks(shared, stream.most_runs, walks, runs, bytes);
  const DeflateStep step = shared.step;
  if (shared.damaged != 0 || step.next > left || step.size > stream.size - stream.done)
    return false;
  std::uint8_t* out = stream.out + stream.done;
  each_thread<kThreads>([&](int thread) {
    const DeflateWalk& walk = walks[thread];
    if (walk.from == kNotReached) return;
    WriteSymbols symbols(stream.runs, out, runs[thread], bytes[thread]);
    follow(shared, walk.from, walk.next & ~kBlockEnded, symbols);
    symbols.end_literals();
  });
  if (step.size > 0) {
    const Runs all{stream.runs.runs, step.runs, stream.runs.index, out, step.size, first_repeats()};
    if (!copy_runs<kThreads>(shared.memory.copy, all, out, stream.done - stream.member))
      return false;
  }
  stream.done += step.size;
  at = step.next;
  ended = step.ended;
  return true;
}

}  // namespace batchfs::gpu

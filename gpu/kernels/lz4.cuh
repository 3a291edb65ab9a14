#pragma once
// Decodes one LZ4 block (lz4_Block_format.md): a Blosc split, or a whole chunk of numcodecs' LZ4.
//
// Parallelism: the work within one block is split among all threads. An LZ4 block is a chain of
// sequences whose starts are known only by walking it, a few hundred cycles for each step if one
// thread does it; this bounds a decoder with one warp per stream. Here every thread of a block
// walks its own segment of the input from a few guesses. A walk that starts wrong falls into step
// with the true one after a few sequences, because nearly any bytes read as sequences; so one of
// the guesses is nearly always right, and where it ends is the true start of the following segment.
// Threads then choose the guess that starts where their predecessor ended, or walk again from
// there, until no start changes: then, by induction from the first, all are true. Data that never
// fall into step cost a walk for each segment, as much as walking in order.
//
// After that a scan of the segments' run counts and sizes yields the places of each thread's runs
// and output, a last walk writes the runs, checking everything, and copy.cuh executes them.

#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// A walk over a segment of the input.
struct Lz4Walk {
  std::uint32_t from = 0;  // where its first sequence starts
  std::uint32_t next = 0;  // where the first sequence after the segment starts
  std::uint32_t runs = 0;  // that its sequences make
  std::uint32_t size = 0;  // bytes of output that they make
};

inline constexpr int kGuesses = 3;
inline constexpr std::uint32_t kMinSegment = 32;
inline constexpr std::uint32_t kRunUp = 96;  // bytes walked before a segment, to fall into step

struct Lz4Segment {
  std::uint32_t begin = 0, end = 0;
  Lz4Walk guesses[kGuesses];
  Lz4Walk walk;  // the one believed in
};

template <int kThreads, int kTile>
struct Lz4Shared {
  CopyShared<kThreads, kTile> copy;
  std::uint32_t next[kThreads];  // where the first sequence after each segment starts
  std::uint32_t runs[kThreads];
  std::uint64_t size[kThreads];
  std::uint32_t damaged;
  std::uint32_t ended;  // a last sequence was seen, as there must be
};

struct Lz4Sequence {
  std::uint32_t literals = 0, literal_size = 0;  // position and count
  std::uint32_t distance = 0, match_size = 0;
  std::uint32_t next = 0;  // the end of the input when this is the last, or not a sequence
  bool last = false;       // literals only
  bool good = false;
};

/// Adds the bytes of an extended length. Lengths above `most` are damage.
BATCHFS_GPU bool extend_length(const std::uint8_t* in, std::uint32_t size, std::uint32_t most,
                               std::uint32_t& at, std::uint32_t& length) {
  for (;;) {
    if (at >= size || length > most) return false;
    const std::uint32_t byte = in[at++];
    length += byte;
    if (byte != 255) return length <= most;
  }
}

/// Reads the sequence at `at`, which is inside the input. `most` bytes can be made.
BATCHFS_GPU Lz4Sequence read_sequence(const std::uint8_t* in, std::uint32_t size,
                                      std::uint32_t most, std::uint32_t at) {
  Lz4Sequence sequence;
  sequence.next = size;
  const std::uint32_t token = in[at++];
  sequence.literal_size = token >> 4;
  if (sequence.literal_size == 15 && !extend_length(in, size, most, at, sequence.literal_size))
    return sequence;
  if (sequence.literal_size > size - at) return sequence;
  sequence.literals = at;
  at += sequence.literal_size;
  if (at == size) {
    sequence.last = sequence.good = true;
    return sequence;
  }
  if (size - at < 2) return sequence;
  sequence.distance = in[at] | static_cast<std::uint32_t>(in[at + 1]) << 8;
  at += 2;
  sequence.match_size = token & 15;
  if (sequence.match_size == 15 && !extend_length(in, size, most, at, sequence.match_size))
    return sequence;
  sequence.match_size += 4;
  sequence.next = at;
  sequence.good = true;
  return sequence;
}

/// Continues each of the walks to `end`. Walks that meet continue as one.
template <int kWalks>
BATCHFS_GPU void walk_to(const std::uint8_t* in, std::uint32_t input_size, std::uint32_t most,
                         std::uint32_t end, Lz4Walk (&walks)[kWalks]) {
  for (;;) {
    std::uint32_t at = walks[0].next;
    for (const Lz4Walk& walk : walks) at = walk.next < at ? walk.next : at;
    if (at >= end) return;
    const Lz4Sequence sequence = read_sequence(in, input_size, most, at);
    for (Lz4Walk& walk : walks) {
      if (walk.next != at) continue;
      walk.next = sequence.next;
      walk.runs += (sequence.literal_size > 0) + (sequence.match_size > 0);
      walk.size += sequence.literal_size + sequence.match_size;
    }
  }
}

/// Guesses where the first sequence of a segment may start, and continues from there. Most
/// sequences of shuffled data take three bytes, so three walks that begin one byte apart soon meet
/// the true one.
BATCHFS_GPU void guess(const std::uint8_t* in, std::uint32_t input_size, std::uint32_t most,
                       Lz4Segment& segment) {
  const std::uint32_t run_up = segment.begin > kRunUp ? segment.begin - kRunUp : 0;
  for (int i = 0; i < kGuesses; ++i)
    segment.guesses[i].next = run_up > 0 ? run_up + static_cast<std::uint32_t>(i) : 0;
  walk_to(in, input_size, most, segment.begin, segment.guesses);
  for (Lz4Walk& walk : segment.guesses) walk = {walk.next, walk.next, 0, 0};
  walk_to(in, input_size, most, segment.end, segment.guesses);
  segment.walk = segment.guesses[0];
}

/// Returns whether the end of a walk from `from` over the segment is known without walking; if so,
/// sets the segment's walk.
BATCHFS_GPU bool known_walk(std::uint32_t from, Lz4Segment& segment) {
  if (from >= segment.end) {  // a sequence that began before passes all of it
    segment.walk = {from, from, 0, 0};
    return true;
  }
  bool known = false;
  for (const Lz4Walk& walk : segment.guesses) {
    if (walk.from != from) continue;
    segment.walk = walk;
    known = true;
  }
  return known;
}

/// Makes the walks of a warp's segments, those from number `begin` on, follow one another, the
/// first from `from` on. Returns whether one changed.
template <int kThreads>
BATCHFS_GPU bool join_walks(const std::uint8_t* in, std::uint32_t input_size, std::uint32_t most,
                            std::uint32_t from, Threads<Lz4Segment, kThreads>& segments,
                            int begin) {
  Lanes<std::uint32_t> next;
  Lanes<bool> unknown, changed;
  each_lane([&](int lane) {
    next[lane] = segments[begin + lane].walk.next;
    unknown[lane] = changed[lane] = false;
  });
  const Lanes<std::uint32_t> ends = from_below(next, 1);
  each_lane([&](int lane) {
    changed[lane] = (lane > 0 ? ends[lane] : from) != segments[begin + lane].walk.from;
  });
  if (ballot(changed) == 0) return false;
  // In order, so that a long run of literals passes all of its segments at once.
  for (int turn = 0; turn < kLanes; ++turn) {
    const std::uint32_t start = turn > 0 ? value_of(next, turn - 1) : from;
    each_lane([&](int lane) {
      if (lane != turn || start == segments[begin + lane].walk.from) return;
      unknown[lane] = !known_walk(start, segments[begin + lane]);
      if (unknown[lane]) segments[begin + lane].walk.from = start;
      next[lane] = segments[begin + lane].walk.next;
    });
  }
  each_lane([&](int lane) {
    if (!unknown[lane]) return;
    Lz4Walk walks[1];
    walks[0].from = walks[0].next = segments[begin + lane].walk.from;
    walk_to(in, input_size, most, segments[begin + lane].end, walks);
    segments[begin + lane].walk = walks[0];
  });
  return true;
}

/// Writes a segment's runs, from number `number` and output position `start` on. Applies liblz4's
/// rules for the end of a block and refuses the same input. Returns false for damage.
BATCHFS_GPU bool write_runs(const std::uint8_t* in, const Lz4Stream& stream,
                            const Lz4Segment& segment, const RunWriter& writer,
                            std::uint32_t number, std::uint32_t start, std::uint32_t* ended) {
  std::uint32_t at = segment.walk.from;
  while (at < segment.end) {
    const Lz4Sequence sequence = read_sequence(in, stream.source_size, stream.size, at);
    if (!sequence.good || sequence.literal_size > stream.size - start) return false;
    if (sequence.literal_size > 0) {
      writer.write(number++, start, sequence.literal_size, kLiteralRun | sequence.literals);
      start += sequence.literal_size;
    }
    if (sequence.last) {
      *ended = 1;
      return true;
    }
    const std::uint32_t left = stream.size - start;
    if (left < 12 || sequence.match_size > left - 5) return false;  // MFLIMIT, LASTLITERALS
    if (stream.source_size - (sequence.literals + sequence.literal_size) < 8) return false;
    if (sequence.distance == 0 || sequence.distance > start) return false;
    writer.write(number++, start, sequence.match_size, sequence.distance);
    start += sequence.match_size;
    at = sequence.next;
  }
  return true;
}

/// Replaces, in place, each thread's value by the sum of the values of the threads below it.
template <int kThreads, class T>
BATCHFS_GPU void exclusive_scan(T (&values)[kThreads]) {
  for (int distance = 1; distance < kThreads; distance *= 2) {
    Threads<T, kThreads> below;
    each_thread<kThreads>(
        [&](int thread) { below[thread] = thread >= distance ? values[thread - distance] : 0; });
    each_thread<kThreads>([&](int thread) { values[thread] += below[thread]; });
  }
  Threads<T, kThreads> below;
  each_thread<kThreads>([&](int thread) { below[thread] = thread > 0 ? values[thread - 1] : 0; });
  each_thread<kThreads>([&](int thread) { values[thread] = below[thread]; });
}

/// Decodes `stream`. Returns false when it is damaged; the contents of the target are then
/// undefined.
template <int kThreads, int kTile>
BATCHFS_GPU bool decode_lz4(Lz4Shared<kThreads, kTile>& shared, const Lz4Stream& stream,
                            const std::uint8_t* in, std::uint8_t* out, Run* runs,
                            std::uint32_t* index) {
  const std::uint32_t input_size = stream.source_size;
  std::uint32_t share = (input_size + kThreads - 1) / kThreads;
  if (share < kMinSegment) share = kMinSegment;

  Threads<Lz4Segment, kThreads> segments;
  each_thread<kThreads>([&](int thread) {
    Lz4Segment& segment = segments[thread];
    const std::uint64_t begin = std::uint64_t{share} * static_cast<std::uint32_t>(thread);
    segment.begin = begin < input_size ? static_cast<std::uint32_t>(begin) : input_size;
    segment.end = input_size - segment.begin < share ? input_size : segment.begin + share;
    guess(in, input_size, stream.size, segment);
    shared.next[thread] = segment.walk.next;
    if (thread == 0) shared.damaged = shared.ended = 0;
  });
  for (bool changed = true; changed;) {
    Warps<std::uint32_t, kThreads> from;
    each_warp<kThreads>(
        [&](int warp) { from[warp] = warp > 0 ? shared.next[warp * kLanes - 1] : 0; });
    changed = any_warp<kThreads>([&](int warp) {
      const int begin = warp * kLanes;
      if (!join_walks<kThreads>(in, input_size, stream.size, from[warp], segments, begin))
        return false;
      each_lane([&](int lane) { shared.next[begin + lane] = segments[begin + lane].walk.next; });
      return true;
    });
  }

  each_thread<kThreads>([&](int thread) {
    shared.runs[thread] = segments[thread].walk.runs;
    shared.size[thread] = segments[thread].walk.size;
  });
  exclusive_scan(shared.runs);
  exclusive_scan(shared.size);
  each_thread<kThreads>([&](int thread) {
    const Lz4Segment& segment = segments[thread];
    const RunWriter writer{runs, index};
    if (segment.walk.size > stream.size || shared.size[thread] > stream.size - segment.walk.size ||
        !write_runs(in, stream, segment, writer, shared.runs[thread],
                    static_cast<std::uint32_t>(shared.size[thread]), &shared.ended))
      shared.damaged = 1;
    if (thread == kThreads - 1) {  // the totals
      shared.runs[thread] += segment.walk.runs;
      shared.size[thread] += segment.walk.size;
    }
  });
  if (shared.damaged != 0 || shared.ended == 0 || shared.size[kThreads - 1] != stream.size)
    return false;

  const Runs all{runs, shared.runs[kThreads - 1], index, in, stream.size, first_repeats()};
  return copy_runs<kThreads>(shared.copy, all, out, 0);
}

/// The work of one block of threads: stream number `number`.
template <int kThreads, int kTile>
BATCHFS_GPU void lz4_stream(Lz4Shared<kThreads, kTile>& shared, const Work& work,
                            std::uint32_t number) {
  const Lz4Stream& stream = work.lz4_streams[number];
  std::uint8_t* out =
      (stream.target.area == Area::planes ? work.planes : work.target) + stream.target.offset;
  const bool good = decode_lz4(shared, stream, work.source + stream.source, out,
                               work.runs + stream.runs, work.run_index + stream.run_index);
  each_thread<kThreads>([&](int thread) {
    if (thread == 0 && !good) raise_to(work.status + stream.chunk, kDamaged);
  });
}

}  // namespace batchfs::gpu

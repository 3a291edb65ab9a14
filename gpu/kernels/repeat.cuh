#pragma once
// Zstandard's repeated offsets (RFC 8878, 3.1.1.5) as a scan.
//
// Each sequence changes the three most recent offsets: it puts a new one in front, or brings one of
// the three to the front, or puts the first less one in front. Such changes compose, so the offsets
// at every sequence come from a scan, within a warp and, as blocks are decoded at the same time,
// from block to block: a value is either a distance, or "the k-th of the three offsets at the start
// of the block, less d", which is written as kRepeated + k * 2^28 - d (at most 43690 sequences fit
// into a block, and each adds at most one to d).

#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

inline constexpr std::uint32_t kRepeated = 0x50000000u;  // of the first offset, less 0
inline constexpr std::uint32_t kRepeatedStep = 1u << 28;
inline constexpr std::uint32_t kMaxDistance = (1u << 30) - 1;

/// The three offsets, or a change of them.
struct Repeats {
  std::uint32_t offset[3];
};

/// The offsets at the start of a frame.
BATCHFS_GPU Repeats first_repeats() { return Repeats{{1, 4, 8}}; }
/// The identity change.
BATCHFS_GPU Repeats same_repeats() {
  return Repeats{{kRepeated, kRepeated + kRepeatedStep, kRepeated + 2 * kRepeatedStep}};
}

BATCHFS_GPU bool is_repeated(std::uint32_t from) { return from >= 1u << 30 && from < kLiteralRun; }

/// Subtracts `by` from an offset. An offset of 0 marks damaged data and stays.
BATCHFS_GPU std::uint32_t less(std::uint32_t offset, std::uint32_t by) {
  return offset > by ? offset - by : 0;
}

/// `from`, with repeated offsets replaced by their values in `before`.
BATCHFS_GPU std::uint32_t resolved(std::uint32_t from, const Repeats& before) {
  if (!is_repeated(from)) return from;
  const std::uint32_t k = (from - kRepeated + kRepeatedStep / 2) >> 28;
  const std::uint32_t by = kRepeated + k * kRepeatedStep - from;
  const std::uint32_t was = k == 0   ? before.offset[0]
                            : k == 1 ? before.offset[1]
                                     : before.offset[2];
  return less(was, by);
}

/// The composition: first `before`, then `change`.
BATCHFS_GPU Repeats composed(const Repeats& change, const Repeats& before) {
  return Repeats{{resolved(change.offset[0], before), resolved(change.offset[1], before),
                  resolved(change.offset[2], before)}};
}

/// The change that a sequence makes; the offset it uses is then the first. `value` is the decoded
/// offset value, 1 to 3 of which are repeats.
BATCHFS_GPU Repeats change_of(std::uint32_t value, bool has_literals) {
  const Repeats same = same_repeats();
  if (value > 3) return Repeats{{value - 3, same.offset[0], same.offset[1]}};
  switch (value - 1 + (has_literals ? 0 : 1)) {
    case 0:
      return same;
    case 1:
      return Repeats{{same.offset[1], same.offset[0], same.offset[2]}};
    case 2:
      return Repeats{{same.offset[2], same.offset[0], same.offset[1]}};
    default:
      return Repeats{{same.offset[0] - 1, same.offset[0], same.offset[1]}};
  }
}

}  // namespace batchfs::gpu

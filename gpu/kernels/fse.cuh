#pragma once
// Finite state entropy tables (RFC 8878, 4.1): the stored distribution, and the decoding table.
//
// Parallelism: the table is built in parallel. The distribution is a few dozen variable-length
// numbers that one lane reads; a warp then places the symbols (32 steps of the spreading walk at a
// time; a search in the cumulated counts finds the symbol of a step) and numbers the states of each
// symbol (a symbol's n-th state in table order gets the n-th number: lanes with equal symbols count
// one another).

#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

/// A decoding table's entry: how many extra bits the symbol has, how many bits select the next
/// state, how many bits a sequence takes for this code in all, and where the next state starts. The
/// entries of three tables can be added: no field's sum of three reaches into the next one but the
/// extra bits', by one, where there is room. The field that a chain of states needs first is
/// lowest: an entry, or a sum of two, is a shift count modulo 32.
struct FseEntry {
  static constexpr int kBits = 5, kTaken = 10, kNext = 23;

  BATCHFS_GPU static std::uint32_t packed(std::uint32_t next, std::uint32_t bits,
                                          std::uint32_t extra) {
    return extra | bits << kBits | (extra + bits) << kTaken | next << kNext;
  }
  BATCHFS_GPU static std::uint32_t extra(std::uint32_t entry) { return entry & 0x1f; }
  BATCHFS_GPU static std::uint32_t bits(std::uint32_t entry) { return entry >> kBits & 0x1f; }
  BATCHFS_GPU static std::uint32_t taken(std::uint32_t sum) { return sum >> kTaken & 0x7f; }
  BATCHFS_GPU static std::uint32_t next(std::uint32_t entry) { return entry >> kNext; }
  /// The entry of the next state, `more` after where it starts.
  BATCHFS_GPU static const std::uint32_t* next(const std::uint32_t* table, std::uint32_t entry,
                                               std::uint32_t more) {
    static_assert(kTaken + 7 <= kNext - 2);  // zeros below it: a shift gives bytes
    return reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(table) +
                                                  (entry >> (kNext - 2))) +
           more;
  }
};

inline constexpr int kMaxCounts = 64;  // symbols of one distribution, and a few more

/// How often each symbol stands in the table; -1 for one that is rarer than once.
struct FseCounts {
  std::int16_t count[kMaxCounts];
  std::uint32_t symbols;
  std::uint32_t accuracy;  // the table has 2^accuracy entries
};

/// A word of a bit stream: zeros outside of it.
BATCHFS_GPU std::uint32_t stream_word(const std::uint8_t* bytes, std::uint32_t size, int index) {
  if (index < 0) return 0;
  const std::uint64_t at = 4 * std::uint64_t(static_cast<std::uint32_t>(index));
  if (at + 4 <= size) return load_u32(bytes + at);
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < 4; ++i)
    if (at + i < size) word |= std::uint32_t{bytes[at + i]} << (8 * i);
  return word;
}

/// The `count` bits (below 32) from bit `at` on, which may be negative.
BATCHFS_GPU std::uint32_t stream_bits(const std::uint8_t* bytes, std::uint32_t size, int at,
                                      std::uint32_t count) {
  const int word = at >> 5;
  return funnel(stream_word(bytes, size, word), stream_word(bytes, size, word + 1), at & 31) &
         ((1u << count) - 1);
}

/// Where a stream that is read backwards starts: below the highest bit of its last byte. Negative
/// when it has none.
BATCHFS_GPU int backward_start(const std::uint8_t* bytes, std::uint32_t size) {
  if (size == 0 || size > 1u << 20 || bytes[size - 1] == 0) return -1;
  return static_cast<int>(8 * (size - 1)) + top_bit(bytes[size - 1]);
}

/// Reads a distribution (4.1.1) by one lane. Returns how many bytes it takes, 0 for damage.
BATCHFS_GPU std::uint32_t read_counts(const std::uint8_t* bytes, std::uint32_t size,
                                      std::uint32_t most_accuracy, std::uint32_t most_symbols,
                                      FseCounts& counts) {
  int at = 4;
  counts.accuracy = stream_bits(bytes, size, 0, 4) + 5;
  if (counts.accuracy > most_accuracy) return 0;
  std::uint32_t left = 1u << counts.accuracy, symbol = 0;
  while (left > 0 && symbol < most_symbols) {
    // One of left + 2 values: the lower ones take a bit less.
    const std::uint32_t bits = static_cast<std::uint32_t>(top_bit(left + 1)) + 1;
    const std::uint32_t low_mask = (1u << (bits - 1)) - 1, short_ones = (1u << bits) - 2 - left;
    std::uint32_t value = stream_bits(bytes, size, at, bits);
    if ((value & low_mask) < short_ones) {
      value &= low_mask;
      at += static_cast<int>(bits) - 1;
    } else {
      if (value > low_mask) value -= short_ones;
      at += static_cast<int>(bits);
    }
    const int count = static_cast<int>(value) - 1;
    left -= static_cast<std::uint32_t>(count < 0 ? 1 : count);
    counts.count[symbol++] = static_cast<std::int16_t>(count);
    if (count != 0) continue;
    for (std::uint32_t more = 3; more == 3;) {  // how many symbols follow that don't occur
      more = stream_bits(bytes, size, at, 2);
      at += 2;
      for (std::uint32_t i = 0; i < more; ++i) {
        if (symbol >= most_symbols) return 0;
        counts.count[symbol++] = 0;
      }
    }
  }
  const std::uint32_t taken = static_cast<std::uint32_t>(at + 7) / 8;
  counts.symbols = symbol;
  return left == 0 && taken <= size ? taken : 0;
}

/// Scratch memory to build a table.
struct FseScratch {
  std::uint16_t first[kMaxCounts];  // cumulated counts, then each symbol's next state number
};

/// Builds the table of 2^accuracy entries, and the symbols that they stand for, by a warp.
/// `extra(symbol)` is how many extra bits a symbol has.
template <class Extra>
BATCHFS_GPU void build_table(const FseCounts& counts, FseScratch& scratch, std::uint32_t* table,
                             std::uint8_t* symbols, Extra extra) {
  const std::uint32_t size = 1u << counts.accuracy;
  // Symbols rarer than once take the last entries, from the end on; the others are cumulated.
  std::uint32_t total = 0, rare = 0;
  for (std::uint32_t begin = 0; begin < counts.symbols; begin += kLanes) {
    Lanes<std::uint32_t> common;
    Lanes<bool> is_rare;
    each_lane([&](int lane) {
      const std::uint32_t s = begin + static_cast<std::uint32_t>(lane);
      const int count = s < counts.symbols ? counts.count[s] : 0;
      common[lane] = count > 0 ? static_cast<std::uint32_t>(count) : 0;
      is_rare[lane] = count < 0;
    });
    const Lanes<std::uint32_t> sums = inclusive_scan(common);
    const std::uint32_t rare_lanes = ballot(is_rare);
    each_lane([&](int lane) {
      const std::uint32_t s = begin + static_cast<std::uint32_t>(lane);
      if (s < counts.symbols)
        scratch.first[s] = static_cast<std::uint16_t>(total + sums[lane] - common[lane]);
      if (is_rare[lane]) {
        const std::uint32_t before =
            rare + static_cast<std::uint32_t>(bits_in(rare_lanes & lanes_up_to(lane))) - 1;
        symbols[size - 1 - before] = static_cast<std::uint8_t>(s);
      }
    });
    total += value_of(sums, kLanes - 1);
    rare += static_cast<std::uint32_t>(bits_in(rare_lanes));
  }
  sync_lanes();
  const std::uint32_t step = (size >> 1) + (size >> 3) + 3;
  std::uint32_t placed = 0;
  for (std::uint32_t begin = 0; begin < size; begin += kLanes) {
    Lanes<bool> takes;
    Lanes<std::uint32_t> position;
    each_lane([&](int lane) {
      position[lane] = (begin + static_cast<std::uint32_t>(lane)) * step & (size - 1);
      takes[lane] = position[lane] < size - rare;
    });
    const std::uint32_t takers = ballot(takes);
    each_lane([&](int lane) {
      if (!takes[lane]) return;
      const std::uint32_t i =
          placed + static_cast<std::uint32_t>(bits_in(takers & lanes_up_to(lane))) - 1;
      std::uint32_t low = 0, high = counts.symbols;  // the last symbol with first <= i and a count
      while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (scratch.first[middle] <= i ? low : high) = middle;
      }
      symbols[position[lane]] = static_cast<std::uint8_t>(low);
    });
    placed += static_cast<std::uint32_t>(bits_in(takers));
  }
  sync_lanes();
  for (std::uint32_t begin = 0; begin < counts.symbols; begin += kLanes)
    each_lane([&](int lane) {
      const std::uint32_t s = begin + static_cast<std::uint32_t>(lane);
      if (s < counts.symbols)
        scratch.first[s] = static_cast<std::uint16_t>(counts.count[s] < 0 ? 1 : counts.count[s]);
    });
  sync_lanes();
  for (std::uint32_t begin = 0; begin < size; begin += kLanes) {
    Lanes<std::uint32_t> symbol;
    each_lane([&](int lane) { symbol[lane] = symbols[begin + static_cast<std::uint32_t>(lane)]; });
    const Lanes<std::uint32_t> same = same_lanes(symbol);
    Lanes<std::uint32_t> state;
    each_lane([&](int lane) {
      state[lane] = scratch.first[symbol[lane]] +
                    static_cast<std::uint32_t>(bits_in(same[lane] & lanes_up_to(lane))) - 1;
      const std::uint32_t bits = counts.accuracy - static_cast<std::uint32_t>(top_bit(state[lane]));
      table[begin + static_cast<std::uint32_t>(lane)] =
          FseEntry::packed((state[lane] << bits) - size, bits, extra(symbol[lane]));
    });
    sync_lanes();
    each_lane([&](int lane) {
      if (top_bit(same[lane]) == lane)
        scratch.first[symbol[lane]] = static_cast<std::uint16_t>(state[lane] + 1);
    });
    sync_lanes();
  }
}

}  // namespace batchfs::gpu

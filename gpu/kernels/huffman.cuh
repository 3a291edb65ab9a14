#pragma once
// Huffman-coded literals of Zstandard (RFC 8878, 4.2).
//
// Parallelism: one warp for each stream of a block, and each stream is split among the lanes of its
// warp. Where a code starts is known only by following the codes before it; but Huffman codes that
// are followed from a wrong bit soon fall into step with the true ones. So, as in lz4.cuh, each
// lane follows the codes of its share of the stream from a guess, then from where its predecessor
// ended until no start changes, and a last time to write the symbols, which a scan of the counts
// has given places. Codes that never fall into step cost a round for each share: as much as
// following them in order.
//
// The tree's weights are a chain of at most 255 steps that one lane follows; the table of symbols
// by code is filled by a warp.

#include "gpu/kernels/byte_writer.cuh"
#include "gpu/kernels/fse.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

inline constexpr std::uint32_t kMaxCodeLength = 11;

struct HuffmanShared {
  std::uint32_t tree_size;                   // bytes that the tree takes; 0 for damage
  std::uint16_t table[1 << kMaxCodeLength];  // symbol | length of its code << 8
  std::uint32_t code_bits;                   // the longest code: the table has 2^code_bits entries
  std::uint32_t weights_size;                // bytes last read of the tree; 0 for damage
  std::uint32_t symbols;
  std::uint8_t weights[256];
  std::uint32_t next[kMaxCodeLength + 2];  // by weight: where the next symbol's entries go
  std::uint32_t weight_table[64];
  std::uint8_t weight_symbols[64];
  FseCounts counts;
  FseScratch scratch;
};

/// Follows the two interleaved states of compressed weights (4.2.1.2), by one lane.
BATCHFS_GPU bool read_weights(const std::uint8_t* bytes, std::uint32_t size,
                              HuffmanShared& shared) {
  int at = backward_start(bytes, size);
  if (at < 0) return false;
  std::uint32_t states[2];
  const auto accuracy = shared.counts.accuracy;
  for (std::uint32_t& state : states) {
    at -= static_cast<int>(accuracy);
    state = stream_bits(bytes, size, at, accuracy);
  }
  if (at < 0) return false;
  std::uint32_t count = 0;
  for (std::uint32_t turn = 0;; turn ^= 1) {
    const std::uint32_t entry = shared.weight_table[states[turn]];
    if (count >= 254) return false;
    shared.weights[count++] = shared.weight_symbols[states[turn]];
    at -= static_cast<int>(FseEntry::bits(entry));
    if (at < 0) {  // this state has no successor: the other one holds the last weight
      shared.weights[count++] = shared.weight_symbols[states[turn ^ 1]];
      break;
    }
    states[turn] = FseEntry::next(entry) + stream_bits(bytes, size, at, FseEntry::bits(entry));
  }
  shared.symbols = count;
  return true;
}

/// Completes the weights with the last one, which is not stored, and lays out the table, by one
/// lane.
BATCHFS_GPU bool complete_weights(HuffmanShared& shared) {
  std::uint32_t sum = 0, of_weight[kMaxCodeLength + 2] = {};
  for (std::uint32_t s = 0; s < shared.symbols; ++s) {
    const std::uint32_t weight = shared.weights[s];
    if (weight > kMaxCodeLength) return false;
    ++of_weight[weight];
    if (weight > 0) sum += 1u << (weight - 1);
  }
  if (sum == 0) return false;
  shared.code_bits = static_cast<std::uint32_t>(top_bit(sum)) + 1;
  if (shared.code_bits > kMaxCodeLength) return false;
  const std::uint32_t rest = (1u << shared.code_bits) - sum;
  const auto last = static_cast<std::uint32_t>(top_bit(rest)) + 1;
  if (rest != 1u << (last - 1)) return false;
  shared.weights[shared.symbols++] = static_cast<std::uint8_t>(last);
  ++of_weight[last];
  if (of_weight[1] < 2 || of_weight[1] % 2 != 0) return false;
  std::uint32_t at = 0;
  for (std::uint32_t weight = 1; weight <= kMaxCodeLength; ++weight) {
    shared.next[weight] = at;
    at += of_weight[weight] << (weight - 1);
  }
  return true;
}

/// Reads the tree at `bytes` and builds the table, by a warp. Returns the bytes that the tree
/// takes, 0 for damage.
BATCHFS_GPU std::uint32_t read_tree(const std::uint8_t* bytes, std::uint32_t size,
                                    HuffmanShared& shared) {
  if (size == 0) return 0;
  const std::uint32_t header = bytes[0];
  const bool direct = header >= 128;
  const std::uint32_t stored = direct ? (header - 127 + 1) / 2 : header;
  if (stored == 0 || stored > size - 1) return 0;
  each_lane([&](int lane) {
    if (lane != 0) return;
    shared.weights_size = 0;
    if (direct) {
      shared.symbols = header - 127;
      for (std::uint32_t s = 0; s < shared.symbols; ++s)
        shared.weights[s] = s % 2 == 0 ? bytes[1 + s / 2] >> 4 : bytes[1 + s / 2] & 15;
      shared.weights_size = 1;
    } else {
      shared.weights_size = read_counts(bytes + 1, stored, 6, kMaxCodeLength + 2, shared.counts);
    }
  });
  sync_lanes();
  const std::uint32_t counts_size = shared.weights_size;
  sync_lanes();  // before it is written again
  if (counts_size == 0) return 0;
  if (!direct) {
    build_table(shared.counts, shared.scratch, shared.weight_table, shared.weight_symbols,
                [](std::uint32_t) { return 0u; });
    sync_lanes();
  }
  each_lane([&](int lane) {
    if (lane != 0) return;
    const bool good =
        (direct || read_weights(bytes + 1 + counts_size, stored - counts_size, shared)) &&
        complete_weights(shared);
    shared.weights_size = good ? 1 : 0;
  });
  sync_lanes();
  if (shared.weights_size == 0) return 0;
  for (std::uint32_t begin = 0; begin < shared.symbols; begin += kLanes) {
    Lanes<std::uint32_t> weight;
    each_lane([&](int lane) {
      const std::uint32_t s = begin + static_cast<std::uint32_t>(lane);
      weight[lane] = s < shared.symbols ? shared.weights[s] : 0;
    });
    const Lanes<std::uint32_t> same = same_lanes(weight);
    Lanes<std::uint32_t> end;
    each_lane([&](int lane) {
      if (weight[lane] == 0) return;
      const std::uint32_t entries = 1u << (weight[lane] - 1);
      const auto before = static_cast<std::uint32_t>(bits_in(same[lane] & lanes_up_to(lane))) - 1;
      const std::uint32_t first = shared.next[weight[lane]] + before * entries;
      const std::uint32_t entry =
          (begin + static_cast<std::uint32_t>(lane)) | (shared.code_bits + 1 - weight[lane]) << 8;
      for (std::uint32_t i = 0; i < entries; ++i)
        shared.table[first + i] = static_cast<std::uint16_t>(entry);
      end[lane] = first + entries;
    });
    sync_lanes();
    each_lane([&](int lane) {
      if (weight[lane] != 0 && top_bit(same[lane]) == lane) shared.next[weight[lane]] = end[lane];
    });
    sync_lanes();
  }
  return stored + 1;
}

/// The codes of one stream, followed from a bit position down.
struct HuffmanWalk {
  const std::uint16_t* table;
  std::uint32_t code_bits;
  const std::uint8_t* bytes;
  std::uint32_t size;

  /// Follows codes from bit `at` until one ends at or below bit `end`, and passes each symbol to
  /// `use`. Returns where the last code ended: below 0 if it was incomplete.
  template <class Use>
  BATCHFS_GPU int follow(int at, int end, Use use) const {
    constexpr int kCodes = 4, kNeeded = 64;  // of 11 bits at most: a load gives 57 or more
    while (at >= kNeeded && at - end >= kCodes * static_cast<int>(kMaxCodeLength)) {
      const int first = (at - 57) >> 3;
      const std::uint64_t window = load_u64(bytes + first) << (8 * first + 64 - at);
      auto high = static_cast<std::uint32_t>(window >> 32),
           low = static_cast<std::uint32_t>(window);
      for (int i = 0; i < kCodes; ++i) {
        const std::uint32_t entry = table[top_bits(high, code_bits)], length = entry >> 8;
        high = funnel_left(low, high, length);
        low <<= length;
        at -= static_cast<int>(length);
        use(entry & 0xff);
      }
    }
    while (at > end) {
      const std::uint32_t entry =
          table[stream_bits(bytes, size, at - static_cast<int>(code_bits), code_bits)];
      at -= static_cast<int>(entry >> 8);
      use(entry & 0xff);
    }
    return at;
  }
};

inline constexpr int kMinShare = 256;      // bits of a stream that a lane walks
inline constexpr int kHuffmanRunUp = 128;  // bits walked before them, to fall into step

/// Decodes `count` literals of one stream, by a warp. The stream must end exactly there.
BATCHFS_GPU bool decode_stream(const HuffmanShared& shared, const std::uint8_t* bytes,
                               std::uint32_t size, std::uint8_t* out, std::uint32_t count) {
  const int start = backward_start(bytes, size);
  if (start < 0) return false;
  const HuffmanWalk walk{shared.table, shared.code_bits, bytes, size};
  int share = (start + kLanes - 1) / kLanes;
  if (share < kMinShare) share = kMinShare;
  Lanes<int> from, end, next;
  Lanes<std::uint32_t> symbols;
  const auto count_symbols = [&](int lane) {
    std::uint32_t n = 0;
    next[lane] = walk.follow(from[lane], end[lane], [&](std::uint32_t) { ++n; });
    symbols[lane] = n;
  };
  each_lane([&](int lane) {
    const int begin = start - share * lane > 0 ? start - share * lane : 0;
    end[lane] = begin > share ? begin - share : 0;
    const int before = start - begin > kHuffmanRunUp ? begin + kHuffmanRunUp : start;
    from[lane] = walk.follow(before, begin, [](std::uint32_t) {});
    count_symbols(lane);
  });
  for (;;) {
    const Lanes<int> above = from_below(next, 1);
    Lanes<bool> changed;
    each_lane([&](int lane) {
      const int true_from = lane == 0 ? start : above[lane];
      changed[lane] = true_from != from[lane];
      from[lane] = true_from;
    });
    if (ballot(changed) == 0) break;
    each_lane([&](int lane) {
      if (changed[lane]) count_symbols(lane);
    });
  }
  const Lanes<std::uint32_t> sums = inclusive_scan(symbols);
  if (value_of(sums, kLanes - 1) != count || value_of(next, kLanes - 1) != 0) return false;
  each_lane([&](int lane) {
    ByteWriter writer(out + sums[lane] - symbols[lane]);
    walk.follow(from[lane], end[lane], [&](std::uint32_t symbol) { writer.write(symbol); });
    writer.flush();
  });
  return true;
}

/// Where one of the streams of a block's literals lies, and where its symbols go.
struct LiteralStream {
  std::uint32_t begin = 0, size = 0;  // bytes of the section after the tree
  std::uint32_t first = 0, symbols = 0;
  bool good = false;
};

/// Stream `number` of `streams`, 1 or 4, in a section of `size` bytes that holds `count` literals.
BATCHFS_GPU LiteralStream find_stream(const std::uint8_t* bytes, std::uint32_t size,
                                      std::uint32_t count, std::uint32_t streams,
                                      std::uint32_t number) {
  LiteralStream stream;
  if (streams == 1) return {0, size, 0, count, true};
  if (size < 6) return stream;
  std::uint32_t begin = 6;
  for (std::uint32_t i = 0; i <= number; ++i) {
    const std::uint32_t stored =
        i < 3 ? bytes[2 * i] | std::uint32_t{bytes[2 * i + 1]} << 8 : size - begin;
    if (stored > size - begin) return stream;
    stream.begin = begin;
    stream.size = stored;
    begin += stored;
  }
  const std::uint32_t share = (count + 3) / 4;
  if (3 * share > count) return stream;
  stream.first = number * share;
  stream.symbols = number == 3 ? count - 3 * share : share;
  stream.good = true;
  return stream;
}

}  // namespace batchfs::gpu

#pragma once
// Huffman-coded literals of Zstandard (RFC 8878, 4.2).
//
// What is parallel: the four streams of a block's literals, each decoded by a lane of one warp from a table
// in shared memory, and the blocks. Several codes are looked up for each load from the stream. The tree's
// weights are a chain of at most 255 steps that one lane follows; the table is filled by the warp.

#include "gpu/device.h"
#include "gpu/fse.cuh"
#include "gpu/tables.h"

namespace batchfs::gpu {

inline constexpr std::uint32_t kLongestCode = 11;

struct HuffmanShared {
  std::uint16_t table[1 << kLongestCode];  // symbol | length of its code << 8
  std::uint32_t code_bits;                 // the longest code: the table has 2^code_bits entries
  std::uint32_t weights_size;              // of what was read of the tree last; 0 for damage
  std::uint32_t symbols;
  std::uint8_t weights[256];
  std::uint32_t next[kLongestCode + 2];  // by weight: where the next symbol's entries go
  std::uint32_t weight_table[64];
  FseCounts counts;
  FseScratch scratch;
};

/// Follows the two interleaved states of compressed weights (4.2.1.2), by one lane.
BATCHFS_GPU bool read_weights(const std::uint8_t* bytes, std::uint32_t size, HuffmanShared& shared) {
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
    shared.weights[count++] = static_cast<std::uint8_t>(FseEntry::symbol(entry));
    at -= static_cast<int>(FseEntry::bits(entry));
    if (at < 0) {  // this state has no next one: the other one holds the last weight
      shared.weights[count++] = static_cast<std::uint8_t>(FseEntry::symbol(shared.weight_table[states[turn ^ 1]]));
      break;
    }
    states[turn] = FseEntry::next(entry) + stream_bits(bytes, size, at, FseEntry::bits(entry));
  }
  shared.symbols = count;
  return true;
}

/// Completes the weights with the last one, which is not stored, and lays out the table, by one lane.
BATCHFS_GPU bool complete_weights(HuffmanShared& shared) {
  std::uint32_t sum = 0, of_weight[kLongestCode + 2] = {};
  for (std::uint32_t s = 0; s < shared.symbols; ++s) {
    const std::uint32_t weight = shared.weights[s];
    if (weight > kLongestCode) return false;
    ++of_weight[weight];
    if (weight > 0) sum += 1u << (weight - 1);
  }
  if (sum == 0) return false;
  shared.code_bits = static_cast<std::uint32_t>(top_bit(sum)) + 1;
  if (shared.code_bits > kLongestCode) return false;
  const std::uint32_t rest = (1u << shared.code_bits) - sum;
  const auto last = static_cast<std::uint32_t>(top_bit(rest)) + 1;
  if (rest != 1u << (last - 1)) return false;
  shared.weights[shared.symbols++] = static_cast<std::uint8_t>(last);
  ++of_weight[last];
  if (of_weight[1] < 2 || of_weight[1] % 2 != 0) return false;
  std::uint32_t at = 0;
  for (std::uint32_t weight = 1; weight <= kLongestCode; ++weight) {
    shared.next[weight] = at;
    at += of_weight[weight] << (weight - 1);
  }
  return true;
}

/// Reads the tree at `bytes` and builds the table, by a warp. Returns the bytes that the tree takes, 0 for
/// damage.
BATCHFS_GPU std::uint32_t read_tree(const std::uint8_t* bytes, std::uint32_t size, HuffmanShared& shared) {
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
      shared.weights_size = read_counts(bytes + 1, stored, 6, kLongestCode + 2, shared.counts);
    }
  });
  sync_lanes();
  const std::uint32_t counts_size = shared.weights_size;
  sync_lanes();  // before it is written again
  if (counts_size == 0) return 0;
  if (!direct) {
    build_table(shared.counts, shared.scratch, shared.weight_table, [](std::uint32_t) { return 0u; });
    sync_lanes();
  }
  each_lane([&](int lane) {
    if (lane != 0) return;
    const bool good =
        (direct || read_weights(bytes + 1 + counts_size, stored - counts_size, shared)) && complete_weights(shared);
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
      const std::uint32_t entry = (begin + static_cast<std::uint32_t>(lane)) | (shared.code_bits + 1 - weight[lane]) << 8;
      for (std::uint32_t i = 0; i < entries; ++i) shared.table[first + i] = static_cast<std::uint16_t>(entry);
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

/// Decodes `count` literals of one stream, by one lane. The stream must end exactly there.
BATCHFS_GPU bool decode_literals(const HuffmanShared& shared, const std::uint8_t* bytes, std::uint32_t size,
                                 std::uint8_t* out, std::uint32_t count) {
  int at = backward_start(bytes, size);
  if (at < 0) return false;
  const std::uint32_t bits = shared.code_bits;
  std::uint32_t done = 0;
  constexpr std::uint32_t kAtOnce = 5;  // of 11 bits at most: the 57 that a load surely gives
  while (count - done >= kAtOnce && at >= 64) {
    const int first = (at - 57) >> 3;
    std::uint64_t window = load_u64(bytes + first) << (8 * first + 64 - at);
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t entry = shared.table[window >> (64 - bits)];
      out[done + i] = static_cast<std::uint8_t>(entry);
      window <<= entry >> 8;
      at -= static_cast<int>(entry >> 8);
    }
    done += kAtOnce;
  }
  for (; done < count; ++done) {
    const std::uint32_t entry = shared.table[stream_bits(bytes, size, at - static_cast<int>(bits), bits)];
    out[done] = static_cast<std::uint8_t>(entry);
    at -= static_cast<int>(entry >> 8);
    if (at < 0) return false;
  }
  return at == 0;
}

/// The streams of one block's literals.
BATCHFS_GPU bool decode_streams(const HuffmanShared& shared, const std::uint8_t* bytes, std::uint32_t size,
                                std::uint8_t* out, std::uint32_t count, std::uint32_t streams) {
  std::uint32_t sizes[4] = {size, 0, 0, 0};
  if (streams == 4) {
    if (size < 6) return false;
    std::uint32_t left = size - 6;
    for (int i = 0; i < 3; ++i) {
      sizes[i] = bytes[2 * i] | std::uint32_t{bytes[2 * i + 1]} << 8;
      if (sizes[i] > left) return false;
      left -= sizes[i];
    }
    sizes[3] = left;
    bytes += 6;
  }
  const std::uint32_t share = streams == 4 ? (count + 3) / 4 : count;
  if ((streams - 1) * share > count) return false;
  Lanes<bool> damaged;
  each_lane([&](int lane) {
    const auto stream = static_cast<std::uint32_t>(lane);
    damaged[lane] = false;
    if (stream >= streams) return;
    std::uint32_t begin = 0;
    for (std::uint32_t i = 0; i < stream; ++i) begin += sizes[i];
    const std::uint32_t mine = stream == 0 ? sizes[0] : stream == 1 ? sizes[1] : stream == 2 ? sizes[2] : sizes[3];
    damaged[lane] = !decode_literals(shared, bytes + begin, mine, out + stream * share,
                                     stream + 1 == streams ? count - stream * share : share);
  });
  return ballot(damaged) == 0;
}

}  // namespace batchfs::gpu

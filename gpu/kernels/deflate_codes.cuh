#pragma once
// The Huffman codes of deflate (RFC 1951, 3.2): tables from the lengths of codes, and a code's
// meaning from the bits that begin with it.
//
// Parallelism: a warp for each length counts the symbols with codes of that length and puts them in
// order; a thread for each entry of the table finds the code that its bits begin with. Codes that
// are longer than the table's bits are rare. They are found by their length, as zlib's oldest
// decoder does.

#include "gpu/kernels/lockstep.h"

namespace batchfs::gpu {

inline constexpr std::uint32_t kMaxDeflateCode = 15;
inline constexpr std::uint32_t kFullCodeSpace = 1u << kMaxDeflateCode;

/// A code and its meaning: bits 0 to 3 are its length (0 in a table: look further), 4 to 7 the
/// number of extra bits that follow, 8 and 9 what it stands for, and the upper half is the byte, or
/// the length or distance without the extra bits.
struct DeflateEntry {
  enum Meaning : std::uint32_t { literal, copy, end_of_block, no_code };

  static BATCHFS_GPU std::uint32_t make(Meaning meaning, std::uint32_t code_size,
                                        std::uint32_t value, std::uint32_t extra) {
    return value << 16 | meaning << 8 | extra << 4 | code_size;
  }
  static BATCHFS_GPU std::uint32_t code_size(std::uint32_t entry) { return entry & 15; }
  static BATCHFS_GPU std::uint32_t extra(std::uint32_t entry) { return entry >> 4 & 15; }
  static BATCHFS_GPU Meaning meaning(std::uint32_t entry) {
    return static_cast<Meaning>(entry >> 8 & 3);
  }
  static BATCHFS_GPU std::uint32_t value(std::uint32_t entry) { return entry >> 16; }
  /// The value with the extra bits; `bits` begin with the code.
  static BATCHFS_GPU std::uint32_t full_value(std::uint32_t entry, std::uint32_t bits) {
    return value(entry) + (bits >> code_size(entry) & ((1u << extra(entry)) - 1));
  }
};

/// RFC 1951, 3.2.5: bytes, the end of a block, lengths of copies.
struct LiteralCodes {
  static constexpr std::uint32_t kSymbols = 288, kBits = 11;
  static BATCHFS_GPU std::uint32_t entry(std::uint32_t symbol, std::uint32_t size) {
    if (symbol < 256) return DeflateEntry::make(DeflateEntry::literal, size, symbol, 0);
    if (symbol == 256) return DeflateEntry::make(DeflateEntry::end_of_block, size, 0, 0);
    if (symbol < 265) return DeflateEntry::make(DeflateEntry::copy, size, symbol - 254, 0);
    if (symbol == 285) return DeflateEntry::make(DeflateEntry::copy, size, 258, 0);
    if (symbol > 285) return DeflateEntry::make(DeflateEntry::no_code, size, 0, 0);
    const std::uint32_t extra = (symbol - 261) / 4;
    return DeflateEntry::make(DeflateEntry::copy, size, 3 + ((4 + (symbol - 265) % 4) << extra),
                              extra);
  }
};

struct DistanceCodes {
  static constexpr std::uint32_t kSymbols = 32, kBits = 9;
  static BATCHFS_GPU std::uint32_t entry(std::uint32_t symbol, std::uint32_t size) {
    if (symbol < 4) return DeflateEntry::make(DeflateEntry::copy, size, symbol + 1, 0);
    if (symbol > 29) return DeflateEntry::make(DeflateEntry::no_code, size, 0, 0);
    const std::uint32_t extra = symbol / 2 - 1;
    return DeflateEntry::make(DeflateEntry::copy, size, 1 + ((2 + symbol % 2) << extra), extra);
  }
};

/// The codes that the lengths of a block's codes are written in (3.2.7). The value is the symbol.
struct LengthCodes {
  static constexpr std::uint32_t kSymbols = 19, kBits = 7;
  static BATCHFS_GPU std::uint32_t entry(std::uint32_t symbol, std::uint32_t size) {
    const std::uint32_t extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    return DeflateEntry::make(DeflateEntry::literal, size, symbol, extra);
  }
  /// How often the length of a symbol stands, without the extra bits.
  static BATCHFS_GPU std::uint32_t repeats(std::uint32_t symbol) {
    return symbol < 16 ? 1 : symbol < 18 ? 3 : 11;
  }
};

/// The codes of one kind of a block.
template <class Alphabet>
struct DeflateCodes {
  std::uint32_t table[1 << Alphabet::kBits];  // by the next bits of the input: entries
  std::uint32_t counts[kMaxDeflateCode + 1];  // by length
  /// By length: the first code of 15 bits that begins with none of the codes up to this length.
  std::uint32_t limits[kMaxDeflateCode + 1];
  /// By length: what a code is less than its symbol's place.
  std::uint32_t shifts[kMaxDeflateCode + 1];
  std::uint16_t symbols[Alphabet::kSymbols];  // in the order of their codes

  /// The entry of the code that `bits` begin with; no_code where none does.
  BATCHFS_GPU std::uint32_t find(std::uint32_t bits) const {
    const std::uint32_t entry = table[bits & ((1u << Alphabet::kBits) - 1)];
    return DeflateEntry::code_size(entry) != 0
               ? entry
               : find_among(bits, Alphabet::kBits + 1, kMaxDeflateCode);
  }

  /// The same among the codes of `least` to `most` bits, without the table. Precondition: none of
  /// the shorter ones fits.
  BATCHFS_GPU std::uint32_t find_among(std::uint32_t bits, std::uint32_t least,
                                       std::uint32_t most) const {
    const std::uint32_t code = reversed_bits(bits) >> (32 - kMaxDeflateCode);
    for (std::uint32_t size = least; size <= most; ++size)
      if (code < limits[size])
        return Alphabet::entry(symbols[(code >> (kMaxDeflateCode - size)) + shifts[size]], size);
    return DeflateEntry::make(DeflateEntry::no_code, 0, 0, 0);
  }

  /// Do only the codes of one bit exist, and one of them?
  BATCHFS_GPU bool is_one_bit() const { return counts[1] == 1 && space() == kFullCodeSpace / 2; }

  /// The part of all codes of 15 bits that begin with a code: more than kFullCodeSpace where the
  /// lengths are those of no codes.
  BATCHFS_GPU std::uint32_t space() const {
    std::uint32_t sum = 0;
    for (std::uint32_t size = 1; size <= kMaxDeflateCode; ++size)
      sum += counts[size] << (kMaxDeflateCode - size);
    return sum;
  }
};

/// Calls use(lane, symbol) for the warp's symbols among [0, count) with codes of `size` bits, with
/// how many come before each: use(lane, symbol, before). Returns their number.
template <class Use>
BATCHFS_GPU std::uint32_t each_symbol(const std::uint8_t* lengths, std::uint32_t count,
                                      std::uint32_t size, Use use) {
  std::uint32_t before = 0;
  for (std::uint32_t begin = 0; begin < count; begin += kLanes) {
    Lanes<bool> has;
    each_lane([&](int lane) {
      const std::uint32_t symbol = begin + static_cast<std::uint32_t>(lane);
      has[lane] = symbol < count && lengths[symbol] == size;
    });
    const std::uint32_t having = ballot(has);
    each_lane([&](int lane) {
      if (has[lane])
        use(begin + static_cast<std::uint32_t>(lane),
            before + static_cast<std::uint32_t>(bits_in(having & lanes_below(lane))));
    });
    before += static_cast<std::uint32_t>(bits_in(having));
  }
  return before;
}

/// Builds the codes with these lengths, each at most 15, by a block of threads. Returns false where
/// no such codes exist; whether they may be incomplete is the caller's to decide.
template <int kThreads, class Alphabet>
BATCHFS_GPU bool build_codes(DeflateCodes<Alphabet>& codes, const std::uint8_t* lengths,
                             std::uint32_t count) {
  constexpr std::uint32_t kWarps = kThreads / kLanes;
  each_warp<kThreads>([&](int warp) {
    for (auto size = static_cast<std::uint32_t>(warp); size <= kMaxDeflateCode; size += kWarps) {
      const std::uint32_t having =
          each_symbol(lengths, count, size, [](std::uint32_t, std::uint32_t) {});
      each_lane([&](int lane) {
        if (lane == 0) codes.counts[size] = size > 0 ? having : 0;
      });
    }
  });
  if (codes.space() > kFullCodeSpace) return false;
  each_thread<kThreads>([&](int thread) {
    const auto size = static_cast<std::uint32_t>(thread);
    if (size > kMaxDeflateCode) return;
    std::uint32_t code = 0, symbols = 0;
    for (std::uint32_t s = 1; s < size; ++s) {
      code += codes.counts[s] << (size - s);
      symbols += codes.counts[s];
    }
    codes.limits[size] = (code + codes.counts[size]) << (kMaxDeflateCode - size);
    codes.shifts[size] = symbols - code;
  });
  each_warp<kThreads>([&](int warp) {
    for (auto size = static_cast<std::uint32_t>(warp); size <= kMaxDeflateCode; size += kWarps) {
      if (size == 0 || codes.counts[size] == 0) continue;
      const std::uint32_t first = codes.shifts[size] +
                                  (codes.limits[size] >> (kMaxDeflateCode - size)) -
                                  codes.counts[size];
      each_symbol(lengths, count, size, [&](std::uint32_t symbol, std::uint32_t before) {
        codes.symbols[first + before] = static_cast<std::uint16_t>(symbol);
      });
    }
  });
  each_thread<kThreads>([&](int thread) {
    for (auto i = static_cast<std::uint32_t>(thread); i < 1u << Alphabet::kBits; i += kThreads)
      codes.table[i] = codes.find_among(i, 1, Alphabet::kBits);
  });
  return true;
}

}  // namespace batchfs::gpu

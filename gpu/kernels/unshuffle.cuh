#pragma once
// Reassembles shuffled bytes into items: Blosc's shuffle and bitshuffle and numcodecs' Shuffle;
// copies unshuffled bytes.
//
// Parallelism: one thread for several items; the kernel is memory-bound. A plane is the k-th byte
// of every item of a stretch (shuffle), or eight rows of bits (bitshuffle). Planes are read in
// place: a plane that Blosc stored uncompressed (half of the bytes of float data) comes straight
// from the compressed chunk, whatever its alignment, and is never copied on its own. A thread takes
// four items of a shuffled stretch, or eight of a bitshuffled one, and writes them whole, so that
// both sides of a warp's accesses are contiguous.

#include "gpu/kernels/copy.cuh"
#include "gpu/kernels/lockstep.h"
#include "gpu/kernels/tables.h"

namespace batchfs::gpu {

inline constexpr std::uint32_t kSlice =
    16 * 1024;  // bytes of a stretch that one block of threads puts back
inline constexpr std::uint32_t kMaxItem = 255;

/// Where the bytes of a stretch come from.
struct Planes {
  const Work* work;
  const Unshuffle* row;
  std::uint32_t items;

  BATCHFS_GPU const std::uint8_t* at(const Place& place) const {
    return (place.area == Area::source ? work->source : work->planes) + place.offset;
  }
  /// Byte `plane` of item 0.
  BATCHFS_GPU const std::uint8_t* plane(std::uint32_t number) const {
    const Place* places = work->plane_places + row->planes;
    return row->split ? at(places[number]) : at(places[0]) + std::uint64_t{number} * items;
  }
};

/// Items [begin, end), of kItem bytes: 2, 4 or 8.
template <int kThreads, int kItem>
BATCHFS_GPU void unshuffle_items(const Planes& planes, std::uint8_t* to, std::uint32_t begin,
                                 std::uint32_t end) {
  each_thread<kThreads>([&](int thread) {
    for (std::uint32_t i = begin + 4 * static_cast<std::uint32_t>(thread); i < end;
         i += 4 * kThreads) {
      if (end - i < 4) {
        for (std::uint32_t k = i; k < end; ++k)
          for (std::uint32_t b = 0; b < kItem; ++b)
            to[std::uint64_t{k} * kItem + b] = planes.plane(b)[k];
        continue;
      }
      std::uint32_t words[kItem];  // the four items
      for (int b = 0; b < kItem; b += 4) {
        std::uint32_t p[4] = {};  // four bytes each of up to four planes
        for (int k = 0; k < 4 && b + k < kItem; ++k)
          p[k] = load_u32(planes.plane(static_cast<std::uint32_t>(b + k)) + i);
        const std::uint32_t low01 = pick_bytes(p[0], p[1], 0x5140),
                            high01 = pick_bytes(p[0], p[1], 0x7362);
        if constexpr (kItem == 2) {
          words[0] = low01;
          words[1] = high01;
        } else {
          const std::uint32_t low23 = pick_bytes(p[2], p[3], 0x5140),
                              high23 = pick_bytes(p[2], p[3], 0x7362);
          constexpr int kWords = kItem / 4;
          words[b / 4] = pick_bytes(low01, low23, 0x5410);
          words[b / 4 + kWords] = pick_bytes(low01, low23, 0x7632);
          words[b / 4 + 2 * kWords] = pick_bytes(high01, high23, 0x5410);
          words[b / 4 + 3 * kWords] = pick_bytes(high01, high23, 0x7632);
        }
      }
      for (int w = 0; w < kItem; ++w)
        store_u32(to + std::uint64_t{i} * kItem + 4 * static_cast<std::uint32_t>(w), words[w]);
    }
  });
}

/// Items [begin, end) of any size.
template <int kThreads>
BATCHFS_GPU void unshuffle_any(const Planes& planes, std::uint8_t* to, std::uint32_t begin,
                               std::uint32_t end) {
  const std::uint32_t item = planes.row->item;
  each_thread<kThreads>([&](int thread) {
    const std::uint32_t last = end * item;
    for (std::uint32_t at = begin * item + static_cast<std::uint32_t>(thread); at < last;
         at += kThreads)
      to[at] = planes.plane(at % item)[at / item];
  });
}

/// The 8 x 8 bits of eight bytes, transposed: bit e of byte b becomes bit b of byte e.
BATCHFS_GPU std::uint64_t transposed_bits(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
  x = x ^ t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
  x = x ^ t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
  return x ^ t ^ (t << 28);
}

/// Items [begin, end), both multiples of 8. Row r of bits holds bit r % 8 of byte r / 8 of every
/// item, and rows follow one another; a split cuts the stretch into as many equal parts as an item
/// has bytes, so each part holds the eight rows of one byte.
template <int kThreads>
BATCHFS_GPU void unbitshuffle(const Planes& planes, std::uint8_t* to, std::uint32_t begin,
                              std::uint32_t end) {
  const std::uint32_t item = planes.row->item, row_size = planes.items / 8;
  each_thread<kThreads>([&](int thread) {
    for (std::uint32_t eight = begin / 8 + static_cast<std::uint32_t>(thread); eight < end / 8;
         eight += kThreads) {
      for (std::uint32_t byte = 0; byte < item; ++byte) {
        const std::uint8_t* rows = planes.plane(byte) + eight;
        std::uint64_t bits = 0;
        for (int r = 0; r < 8; ++r)
          bits |= std::uint64_t{rows[static_cast<std::uint32_t>(r) * row_size]} << (8 * r);
        bits = transposed_bits(bits);
        for (std::uint32_t e = 0; e < 8; ++e)
          to[(std::uint64_t{eight} * 8 + e) * item + byte] =
              static_cast<std::uint8_t>(bits >> (8 * e));
      }
    }
  });
}

/// How many blocks of threads share a stretch of `size` bytes.
constexpr std::uint32_t slices(std::uint32_t size) { return (size + kSlice - 1) / kSlice; }

/// The work of one block of threads: slice `slice` of stretch `number`.
template <int kThreads>
BATCHFS_GPU void unshuffle_slice(const Work& work, std::uint32_t number, std::uint32_t slice) {
  const Unshuffle& row = work.unshuffles[number];
  if (slice >= slices(row.size)) return;
  const std::uint32_t item = row.item, items = row.size / item;
  const Planes planes{&work, &row, items};
  std::uint8_t* to = work.target + row.target;
  const bool last = slice + 1 == slices(row.size);
  if (row.order == Order::copied) {
    copy_stretch<kThreads>(planes.plane(0), to, slice * kSlice,
                           last ? row.size : (slice + 1) * kSlice);
    return;
  }
  // Whole items, in groups of 8 so that no bit row's byte is shared.
  const std::uint32_t share = kSlice / item / 8 * 8;
  const std::uint32_t begin = slice * share < items ? slice * share : items;
  const std::uint32_t end = last || items - begin < share ? items : begin + share;
  if (row.order == Order::bitshuffled) {
    unbitshuffle<kThreads>(planes, to, begin, end);
  } else if (item == 4) {
    unshuffle_items<kThreads, 4>(planes, to, begin, end);
  } else if (item == 2) {
    unshuffle_items<kThreads, 2>(planes, to, begin, end);
  } else if (item == 8) {
    unshuffle_items<kThreads, 8>(planes, to, begin, end);
  } else {
    unshuffle_any<kThreads>(planes, to, begin, end);
  }
  // The remainder of a stretch, shorter than an item, is stored unshuffled.
  if (last && items * item < row.size) {
    const std::uint8_t* stored = planes.plane(0);
    copy_stretch<kThreads>(stored, to, items * item, row.size);
  }
}

}  // namespace batchfs::gpu

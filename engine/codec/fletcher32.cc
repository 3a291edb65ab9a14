// `fletcher32`: HDF5's checksum after the data, little-endian. Source: HDF5,
// H5_checksum_fletcher32 (H5checksum.c) and H5Z_filter_fletcher32 (H5Zfletcher32.c);
// numcodecs.fletcher32.

#include <algorithm>

#include "engine/codec/checksum_codec.h"
#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

/// Sums 16-bit words, high byte first; an odd last byte counts as a word.
std::uint32_t fletcher32(std::span<const std::byte> data) {
  // The maximum number of words that can be added before the sums must be folded.
  constexpr std::size_t kRun = 360;
  std::uint32_t low = 0, high = 0;
  const auto fold = [](std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  const auto byte = [data](std::size_t i) { return std::to_integer<std::uint32_t>(data[i]); };
  const std::size_t words = data.size() / 2;
  for (std::size_t done = 0; done < words;) {
    const std::size_t end = std::min(done + kRun, words);
    for (; done < end; ++done) {
      low += byte(2 * done) << 8 | byte(2 * done + 1);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  if (data.size() % 2 != 0) {
    low += byte(data.size() - 1) << 8;
    high += low;
    low = fold(low);
    high = fold(high);
  }
  return fold(high) << 16 | fold(low);
}

/// The form that HDF5 before 1.6.3 wrote on little-endian machines; HDF5 reads both.
std::uint32_t with_swapped_bytes(std::uint32_t sum) {
  return (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
}

}  // namespace

std::unique_ptr<Codec> make_fletcher32(const JsonRef&, ChunkLayout&) {
  return make_checksum_codec("fletcher32",
                             [](std::span<const std::byte> data, std::uint32_t stored) {
                               const std::uint32_t sum = fletcher32(data);
                               return sum == stored || with_swapped_bytes(sum) == stored;
                             });
}

}  // namespace batchfs

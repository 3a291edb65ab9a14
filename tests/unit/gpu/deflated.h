#pragma once
// Streams that zlib makes, in every way it knows.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <zlib.h>

namespace batchfs::gpu {

struct Deflating {
  int level = 6, strategy = Z_DEFAULT_STRATEGY;
  int memory = 8;   // a block has 2^(memory + 6) symbols
  int window = 15;  // bits
  bool gzip = false;
  int flush = Z_NO_FLUSH;  // after every `flush_each` bytes
  std::size_t flush_each = SIZE_MAX;
  std::vector<std::uint8_t> dictionary = {};  // that the stream does not mention
};

inline std::vector<std::uint8_t> deflated(const std::vector<std::uint8_t>& data,
                                          const Deflating& how = {}) {
  z_stream z = {};
  // A dictionary is possible only without a header: it is put before.
  const bool headless = !how.dictionary.empty();
  deflateInit2(&z, how.level, Z_DEFLATED,
               headless   ? -how.window
               : how.gzip ? how.window + 16
                          : how.window,
               how.memory, how.strategy);
  if (headless)
    deflateSetDictionary(&z, how.dictionary.data(), static_cast<uInt>(how.dictionary.size()));
  std::vector<std::uint8_t> out(2 * data.size() + 100'000);
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t size = std::min(how.flush_each, data.size() - at);
    z.next_in = const_cast<Bytef*>(data.data() + at);
    z.avail_in = static_cast<uInt>(size);
    at += size;
    if (at < data.size()) deflate(&z, how.flush);
  }
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (!headless) return out;
  std::vector<std::uint8_t> member = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
  member.insert(member.end(), out.begin(), out.end());
  for (const std::uint32_t number :
       {static_cast<std::uint32_t>(crc32(0, data.data(), static_cast<uInt>(data.size()))),
        static_cast<std::uint32_t>(data.size())})
    for (int i = 0; i < 4; ++i) member.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  return member;
}

/// Decodes what follows zlib's two bytes, without its checksum. Returns the size; 0 for damage.
inline std::size_t raw_inflated(const std::vector<std::uint8_t>& stream,
                                std::vector<std::uint8_t>& made) {
  z_stream z = {};
  inflateInit2(&z, -15);
  z.next_in = const_cast<Bytef*>(stream.data() + 2);
  z.avail_in = static_cast<uInt>(stream.size() - 2);
  z.next_out = made.data();
  z.avail_out = static_cast<uInt>(made.size());
  const int outcome = inflate(&z, Z_FINISH);
  inflateEnd(&z);
  return outcome == Z_STREAM_END ? z.total_out : 0;
}

/// Puts the checksum of made[0, size) at the end of a stream of zlib.
inline void put_adler(std::vector<std::uint8_t>& stream, const std::vector<std::uint8_t>& made,
                      std::size_t size) {
  const auto sum = static_cast<std::uint32_t>(adler32(1, made.data(), static_cast<uInt>(size)));
  for (int i = 0; i < 4; ++i)
    stream[stream.size() - 4 + static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(sum >> (24 - 8 * i));
}

}  // namespace batchfs::gpu

#pragma once
// Compressors of chunks that are written, the counterpart of the decoders in engine/codec.
//
// The same bytes and the same compressor produce the same result on every machine with the same
// libraries: nothing here depends on threads or time.

#include <cstdint>
#include <span>
#include <string>

#include "engine/base/buffer.h"
#include "engine/base/json.h"

namespace batchfs {

/// The value of `--codec`: "zstd", "zstd:9", "blosc", "blosc:zstd:5", "gzip:6", "none".
struct Compression {
  enum class Method : std::uint8_t { none, zstd, blosc, gzip } method = Method::zstd;
  int level = 3;
  std::string inner;  // the compressor inside of blosc: "lz4"
};

/// Throws invalid_argument, quoting the text.
Compression parse_compression(const std::string& text);
/// The same the other way: "zstd:3".
std::string compression_text(const Compression& compression);

/// The codec of v3 metadata; null for Method::none. `itemsize` in bytes.
Json v3_codec(const Compression& compression, std::uint32_t itemsize);
/// The compressor of v2 metadata; null for Method::none.
Json v2_compressor(const Compression& compression, std::uint32_t itemsize);

/// The maximum number of bytes that compress() needs and returns.
std::uint64_t compressed_bound(const Compression& compression, std::uint64_t bytes);
/// Bytes that an encoder of chunks of this size takes beside its input and output, while compress()
/// runs or, of Zstandard, as long as the thread lives.
std::uint64_t encoder_memory(const Compression& compression, std::uint64_t bytes);
/// Throws not_supported for more than the format holds (2 GB for Blosc).
Buffer compress(const Compression& compression, std::uint32_t itemsize,
                std::span<const std::byte> bytes);

}  // namespace batchfs

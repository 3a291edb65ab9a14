#pragma once
// The factories of all codecs, one per file; registry.cc gives them their names.

#include "engine/codec/codec.h"

namespace batchfs {

std::unique_ptr<Codec> make_bytes(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_transpose(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_blosc(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_zstd(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_gzip(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_zlib(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lz4(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_crc32c(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_sharding(const JsonRef& configuration, ChunkLayout& layout);

}  // namespace batchfs

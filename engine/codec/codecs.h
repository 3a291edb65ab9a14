#pragma once
// The factories of all codecs, one per file; registry.cc assigns their names.

#include "engine/codec/codec.h"

namespace batchfs {

// From arrays to bytes.
std::unique_ptr<Codec> make_bytes(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_n5_default(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_reshape(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_sharding(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_transpose(const JsonRef& configuration, ChunkLayout& layout);

// From numbers to numbers (numbers/).
std::unique_ptr<Codec> make_cast_value(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_scale_offset(const JsonRef& configuration, ChunkLayout& layout);

// TIFF files, as virtual-tiff and imagecodecs name their codecs (tiff/).
std::unique_ptr<Codec> make_byte_runs(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_chunky(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_float_predictor(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_horizontal_delta(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lzw(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_wrapped_delta(const JsonRef& configuration, ChunkLayout& layout);

// Compressors.
std::unique_ptr<Codec> make_blosc(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_bz2(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_gzip(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lz4(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lz4h5(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lzf(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lzma(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_zlib(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_zstd(const JsonRef& configuration, ChunkLayout& layout);

// By libraries that a build may be without (optional/).
std::unique_ptr<Codec> make_grib(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_jpeg(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_jpeg2k(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_lerc(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_szip(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_webp(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_zfpy(const JsonRef& configuration, ChunkLayout& layout);

// Checksums.
std::unique_ptr<Codec> make_adler32(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_crc32(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_crc32c(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_fletcher32(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_jenkins_lookup3(const JsonRef& configuration, ChunkLayout& layout);

// numcodecs' filters: bytes seen as elements of a configured type.
std::unique_ptr<Codec> make_astype(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_bitround(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_categorize(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_delta(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_fixedscaleoffset(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_packbits(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_quantize(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_record_member(const JsonRef& configuration, ChunkLayout& layout);
std::unique_ptr<Codec> make_shuffle(const JsonRef& configuration, ChunkLayout& layout);

}  // namespace batchfs

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "engine/codec/codecs.h"
#include "engine/zarr/refused_codecs.h"

namespace batchfs {

namespace {

/// imagecodecs' Deflate: in zlib's format unless "raw".
std::unique_ptr<Codec> make_wrapped_deflate(const JsonRef& configuration, ChunkLayout& layout) {
  if (const auto raw = configuration.find("raw"); raw && raw->boolean())
    throw raw->error("deflated data without zlib's header are not supported",
                     ErrorCode::not_supported);
  return make_zlib(configuration, layout);
}

struct KnownCodec {
  std::string_view name;
  CodecFactory factory;
  CodecStage stage;
};

constexpr KnownCodec kCodecs[] = {
    {"ChunkyCodec", make_chunky, CodecStage::serializer},
    {"HorizontalDeltaCodec", make_horizontal_delta, CodecStage::filter},
    {"adler32", make_adler32, CodecStage::bytes},
    {"astype", make_astype, CodecStage::filter},
    {"bitround", make_bitround, CodecStage::filter},
    {"blosc", make_blosc, CodecStage::bytes},
    {"bytes", make_bytes, CodecStage::serializer},
    {"bz2", make_bz2, CodecStage::bytes},
    {"cast_value", make_cast_value, CodecStage::array},
    {"categorize", make_categorize, CodecStage::filter},
    {"crc32", make_crc32, CodecStage::bytes},
    {"crc32c", make_crc32c, CodecStage::bytes},
    {"delta", make_delta, CodecStage::filter},
    {"endian", make_bytes, CodecStage::serializer},  // before the final v3 specification
    {"fixedscaleoffset", make_fixedscaleoffset, CodecStage::filter},
    {"fletcher32", make_fletcher32, CodecStage::bytes},
    {"grib", make_grib, CodecStage::values},
    {"gzip", make_gzip, CodecStage::bytes},
    // Names of imagecodecs, which references to HDF5 and TIFF files have.
    {"imagecodecs_bz2", make_bz2, CodecStage::bytes},
    {"imagecodecs_deflate", make_wrapped_deflate, CodecStage::bytes},
    {"imagecodecs_delta", make_wrapped_delta, CodecStage::filter},
    {"imagecodecs_floatpred", make_float_predictor, CodecStage::filter},
    {"imagecodecs_jpeg", make_jpeg, CodecStage::bytes},
    {"imagecodecs_jpeg2k", make_jpeg2k, CodecStage::bytes},
    {"imagecodecs_jpeg8", make_jpeg, CodecStage::bytes},
    {"imagecodecs_lerc", make_lerc, CodecStage::bytes},
    {"imagecodecs_lz4h5", make_lz4h5, CodecStage::bytes},
    {"imagecodecs_lzf", make_lzf, CodecStage::bytes},
    {"imagecodecs_lzw", make_lzw, CodecStage::bytes},
    {"imagecodecs_packbits", make_byte_runs, CodecStage::bytes},
    {"imagecodecs_szip", make_szip, CodecStage::bytes},
    {"imagecodecs_webp", make_webp, CodecStage::bytes},
    {"imagecodecs_zlib", make_zlib, CodecStage::bytes},
    {"imagecodecs_zstd", make_zstd, CodecStage::bytes},
    {"jenkins_lookup3", make_jenkins_lookup3, CodecStage::bytes},
    {"lz4", make_lz4, CodecStage::bytes},
    {"lzma", make_lzma, CodecStage::bytes},
    {"n5_default", make_n5_default, CodecStage::serializer},
    {"packbits", make_packbits, CodecStage::filter},
    {"quantize", make_quantize, CodecStage::filter},
    {"record_member", make_record_member, CodecStage::filter},
    {"reshape", make_reshape, CodecStage::array},
    {"scale_offset", make_scale_offset, CodecStage::array},
    {"sharding_indexed", make_sharding, CodecStage::serializer},
    {"shuffle", make_shuffle, CodecStage::bytes},
    {"transpose", make_transpose, CodecStage::array},
    {"zfpy", make_zfpy, CodecStage::values},
    {"zlib", make_zlib, CodecStage::bytes},
    {"zstd", make_zstd, CodecStage::bytes},
};

const KnownCodec* find(std::string_view name) {
  const auto it = std::find_if(std::begin(kCodecs), std::end(kCodecs),
                               [name](const KnownCodec& entry) { return entry.name == name; });
  return it == std::end(kCodecs) ? nullptr : it;
}

}  // namespace

CodecFactory find_codec(std::string_view name) {
  const KnownCodec* entry = find(name);
  return entry == nullptr ? nullptr : entry->factory;
}

CodecStage codec_stage(std::string_view name) {
  const KnownCodec* entry = find(name);
  if (entry == nullptr) throw Error(ErrorCode::internal, "the stage of an unknown codec");
  return entry->stage;
}

Error unknown_codec(std::string_view name) {
  return Error(ErrorCode::not_supported,
               fmt::format("the codec '{}' is not supported{}", name, refused_codec_advice(name)));
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const KnownCodec& entry : kCodecs) names.emplace_back(entry.name);
  return names;
}

}  // namespace batchfs

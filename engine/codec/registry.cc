#include <algorithm>
#include <iterator>

#include "engine/codec/codecs.h"

namespace batchfs {

namespace {

struct Entry {
  std::string_view name;
  CodecFactory factory;
};

constexpr Entry kCodecs[] = {
    {"adler32", make_adler32},
    {"astype", make_astype},
    {"bitround", make_bitround},
    {"blosc", make_blosc},
    {"bytes", make_bytes},
    {"bz2", make_bz2},
    {"crc32", make_crc32},
    {"crc32c", make_crc32c},
    {"delta", make_delta},
    {"endian", make_bytes},  // before the final v3 specification
    {"fixedscaleoffset", make_fixedscaleoffset},
    {"gzip", make_gzip},
    {"lz4", make_lz4},
    {"lzma", make_lzma},
    {"packbits", make_packbits},
    {"quantize", make_quantize},
    {"sharding_indexed", make_sharding},
    {"shuffle", make_shuffle},
    {"transpose", make_transpose},
    {"zlib", make_zlib},
    {"zstd", make_zstd},
};

}  // namespace

CodecFactory find_codec(std::string_view name) {
  const auto it = std::find_if(std::begin(kCodecs), std::end(kCodecs),
                               [name](const Entry& entry) { return entry.name == name; });
  return it == std::end(kCodecs) ? nullptr : it->factory;
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kCodecs) names.emplace_back(entry.name);
  return names;
}

}  // namespace batchfs

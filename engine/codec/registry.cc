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
    {"blosc", make_blosc},
    {"bytes", make_bytes},
    {"crc32c", make_crc32c},
    {"endian", make_bytes},  // before the final v3 specification
    {"gzip", make_gzip},
    {"lz4", make_lz4},
    {"sharding_indexed", make_sharding},
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

#include "engine/array/looks_like.h"

#include "engine/codec/sharding.h"

namespace batchfs {

FileCompression looks_like(const std::vector<CodecSpec>& codecs) {
  for (auto codec = codecs.rbegin(); codec != codecs.rend(); ++codec) {
    if (codec->name == "gzip") return FileCompression::gzip;
    if (codec->name == "zstd" || codec->name == "imagecodecs_zstd") return FileCompression::zstd;
    if (codec->name == "sharding_indexed")
      return looks_like(parse_codec_list(JsonRef(codec->configuration, codec->name).at("codecs")));
  }
  return FileCompression::none;
}

}  // namespace batchfs

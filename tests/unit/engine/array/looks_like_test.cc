#include "engine/array/looks_like.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace looks_like_test {

CodecSpec codec(const char* name, Json configuration = Json::object()) {
  return {name, std::move(configuration)};
}

TEST(LooksLike, TheOutermostCodecThatWritesAFileFormat) {
  const CodecSpec bytes = codec("bytes"), zstd = codec("zstd"), gzip = codec("gzip"),
                  sum = codec("crc32c"), blosc = codec("blosc", {{"cname", "zstd"}});
  EXPECT_EQ(looks_like({bytes}), FileCompression::none);
  EXPECT_EQ(looks_like({bytes, zstd}), FileCompression::zstd);
  EXPECT_EQ(looks_like({bytes, gzip, sum}), FileCompression::gzip);
  EXPECT_EQ(looks_like({bytes, zstd, gzip}), FileCompression::gzip);
  EXPECT_EQ(looks_like({bytes, codec("imagecodecs_zstd")}), FileCompression::zstd);
  EXPECT_EQ(looks_like({bytes, codec("zlib")}), FileCompression::none);
  EXPECT_EQ(looks_like({bytes, blosc}), FileCompression::none);
}

TEST(LooksLike, ShardsBeginAsTheirInnerChunks) {
  const Json inner = {{"codecs", {{{"name", "bytes"}}, {{"name", "zstd"}}}}};
  EXPECT_EQ(looks_like({codec("sharding_indexed", inner), codec("crc32c")}), FileCompression::zstd);
}

}  // namespace looks_like_test
}  // namespace batchfs

#include "engine/zarr/codecs_text.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace codecs_text_test {

std::string of(const char* name, const char* configuration = "{}") {
  return codecs_text({{"bytes", Json::object()}, {name, Json::parse(configuration)}});
}

TEST(CodecsText, NamesWhatTellsThemApart) {
  EXPECT_EQ(codecs_text({}), "none");
  EXPECT_EQ(codecs_text({{"bytes", Json::object()}}), "none");
  EXPECT_EQ(of("zlib", R"({"level": 5})"), "zlib");
  EXPECT_EQ(of("blosc", R"({"cname": "lz4", "clevel": 5})"), "blosc(lz4)");
  EXPECT_EQ(of("transpose", R"({"order": [1, 0]})"), "transpose([1,0])");
  EXPECT_EQ(of("sharding_indexed",
               R"({"codecs": ["bytes", {"name": "bytes"}, {"name": "zstd"}, "crc32c"]})"),
            "sharding(zstd, crc32c)");
  EXPECT_EQ(codecs_text({{"delta", Json{{"dtype", "<i4"}}}, {"zstd", Json::object()}}),
            "delta(<i4), zstd");
}

TEST(CodecsText, OfAStoreThatMakesNoSense) {
  EXPECT_EQ(of("sharding_indexed", "{}"), "sharding()");
  EXPECT_EQ(of("sharding_indexed", R"({"codecs": 7})"), "sharding()");
  EXPECT_EQ(of("sharding_indexed", R"({"codecs": [null, 3, [], {}, {"name": 4}]})"), "sharding()");
  EXPECT_EQ(of("a\x1b[2Jb", R"({"cname": "\u0007"})"), "a\\x1b[2Jb(\\x07)");
  EXPECT_EQ(of("x", R"({"cname": {"deep": [1]}})"), R"(x({"deep":[1]}))");
}

}  // namespace codecs_text_test
}  // namespace batchfs

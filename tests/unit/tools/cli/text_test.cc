#include "tools/cli/text.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace text_test {

TEST(Table, ColumnsAreAlignedAndLinesEndWithoutSpaces) {
  Table table({"name", "shape", "unit"});
  table.add({"t", "10 x 20", "K"});
  table.add({"übergang", "3", ""});
  table.add({"short"});
  EXPECT_EQ(table.text(),
            "  name      shape    unit\n"
            "  t         10 x 20  K\n"
            "  übergang  3\n"
            "  short\n");
  EXPECT_EQ(Table({"a"}).text(0), "a\n");
}

TEST(Text, Shapes) {
  EXPECT_EQ(shape_text({132, 73, 144}), "132 x 73 x 144");
  EXPECT_EQ(shape_text({}), "scalar");
  EXPECT_EQ(shape_json({2, 0}).dump(), "[2,0]");
  EXPECT_EQ(shape_json({}).dump(), "[]");
}

std::string of(const char* name, const char* configuration = "{}") {
  return codecs_text({{"bytes", Json::object()}, {name, Json::parse(configuration)}});
}

TEST(Text, CodecsByWhatTellsThemApart) {
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

TEST(Text, CodecsOfAStoreThatMakesNoSense) {
  EXPECT_EQ(of("sharding_indexed", "{}"), "sharding()");
  EXPECT_EQ(of("sharding_indexed", R"({"codecs": 7})"), "sharding()");
  EXPECT_EQ(of("sharding_indexed", R"({"codecs": [null, 3, [], {}, {"name": 4}]})"), "sharding()");
  EXPECT_EQ(of("a\x1b[2Jb", R"({"cname": "\u0007"})"), "a\\x1b[2Jb(\\x07)");
  EXPECT_EQ(of("x", R"({"cname": {"deep": [1]}})"), R"(x({"deep":[1]}))");
}

TEST(Text, PrintableHasNoControlCharacters) {
  EXPECT_EQ(printable(std::string("a\0b\n\x7f\xc3\xa4", 7)), "a\\x00b \\x7f\xc3\xa4");
}

}  // namespace text_test
}  // namespace batchfs

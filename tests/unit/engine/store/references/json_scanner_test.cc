#include "engine/store/references/json_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace json_scanner_test {

using references::JsonScanner;
using testing::HasSubstr;

std::string string_of(const std::string& text) {
  JsonScanner scanner(text);
  std::string scratch;
  return std::string(scanner.string(scratch));
}

template <class Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(JsonScanner, ReadsStrings) {
  EXPECT_EQ(string_of(R"("abc")"), "abc");
  EXPECT_EQ(string_of(R"(  "")"), "");
  EXPECT_EQ(string_of(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00x")"),
            "\"\\/\b\f\n\r\tA\xc3\xa9\xf0\x9f\x98\x80x");
  EXPECT_EQ(string_of(R"("\u0000a")"), std::string("\0a", 2));
  for (const char* wrong : {"", "x", "\"", R"("\")", R"("\x")", R"("\u12")", R"("\u12g4")", "\"\\"})
    EXPECT_THAT(refusal([wrong] { string_of(wrong); }), HasSubstr("not valid JSON at byte"))
        << wrong;
  for (const char* half : {R"("\ud800")", R"("\ud800\u0041")", R"("\udc00")"}) {
    EXPECT_THROW(string_of(half), Error) << half;
    JsonScanner scanner(half, 7);
    scanner.skip_string();
    EXPECT_EQ(scanner.since(7), half);
  }
}

TEST(JsonScanner, ReadsCounts) {
  EXPECT_EQ(JsonScanner(" 0").count(), 0u);
  EXPECT_EQ(JsonScanner("18446744073709551615,").count(), UINT64_MAX);
  for (const char* wrong : {"", "-1", "1.0", "1e3", "18446744073709551616", "x", "\"1\""})
    EXPECT_NE(refusal([wrong] { JsonScanner(wrong).count(); }), "") << wrong;
}

TEST(JsonScanner, KeepsValuesAsTheyAreWritten) {
  for (const char* value : {R"({"a": [1, {"b": "]}"}], "c": NaN})", "[]", "{}", "-Infinity", "12.5",
                            R"("a\"b")", "[[[ ]]]"}) {
    const std::string text = std::string(" ") + value + " , 5";
    JsonScanner scanner(text);
    EXPECT_EQ(scanner.value(), value);
    EXPECT_TRUE(scanner.take(','));
    EXPECT_EQ(scanner.count(), 5u);
    EXPECT_TRUE(scanner.at_end());
  }
  for (const char* wrong : {"", "[", "{]", "[}", "[1", R"({"a)", "]"})
    EXPECT_NE(refusal([wrong] { JsonScanner(wrong).value(); }), "") << wrong;
  EXPECT_THAT(refusal([] { JsonScanner(std::string(65, '[')).value(); }),
              HasSubstr("deeper than 64"));
}

TEST(JsonScanner, NamesTheByteOfTheFile) {
  JsonScanner scanner("  x", 100);
  EXPECT_THAT(refusal([&scanner] { scanner.expect('{'); }), HasSubstr("byte 103: expected '{'"));
}

}  // namespace json_scanner_test
}  // namespace batchfs

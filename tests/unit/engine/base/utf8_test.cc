#include "engine/base/utf8.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace utf8_test {

TEST(Utf8, EveryLengthThereAndBack) {
  const std::string text = "a\u00e9\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff";
  const std::u32string points = {U'a', 0xe9, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
  EXPECT_TRUE(is_utf8(text));
  EXPECT_TRUE(is_utf8(""));
  EXPECT_EQ(code_points(text), points);
  std::string back;
  for (const char32_t point : points) append_utf8(back, point);
  EXPECT_EQ(back, text);
}

TEST(Utf8, WhatIsNotWellFormed) {
  for (const char* text :
       {"\x80", "\xff", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3",
        "\xe2\x82", "\xf0\x9f\x98", "\xc3(", "a\x80", "\xe2\x82\x28", "\xf0\x9f\x98\x28"})
    EXPECT_FALSE(is_utf8(text)) << text;
  EXPECT_LE(code_points("\x80\xff\xc3\x80\xf0").size(), 4u);  // no harm
}

TEST(Utf8, TheFirstCodePointOfAText) {
  EXPECT_EQ(first_code_point(""), 0u);
  EXPECT_EQ(first_code_point("a\xff"), 1u);
  EXPECT_EQ(first_code_point("\u00e9\xff"), 2u);
  EXPECT_EQ(first_code_point("\u0800x"), 3u);
  EXPECT_EQ(first_code_point("\U00010000x"), 4u);
  EXPECT_EQ(first_code_point("\xc3"), 0u);
  EXPECT_EQ(first_code_point("\x80"), 0u);
}

TEST(Utf8, WhatIsNoCodePoint) {
  for (const char32_t point :
       {char32_t{0xd800}, char32_t{0xdfff}, char32_t{0x110000}, char32_t{0xffffffff}}) {
    std::string text;
    append_utf8(text, point);
    EXPECT_EQ(text, "\ufffd");
  }
}

}  // namespace utf8_test
}  // namespace batchfs

#include "engine/base/printable.h"

#include <gtest/gtest.h>

#include "engine/base/utf8.h"

namespace batchfs {
namespace printable_test {

TEST(Printable, OrdinaryTextStays) {
  for (const char* text :
       {"", "t2m/c/0.0",
        "K\xc3\xa4se \xe6\xb8\xa9\xe5\xba\xa6 \xd8\xad\xd8\xb1\xd8\xa7\xd8\xb1\xd8\xa9",
        "\xf0\x9f\x8c\x8d", "a\\b 'c' \"d\""})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable(std::string("\0\a\b\x7f", 4)), "\\x00\\x07\\x08\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\x85"),
            "\\u009b31m\\u0085");
}

TEST(Printable, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(printable("a\x9b"
                      "2Jb"),
            "a\\x9b2Jb");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xff\xc3\xa4"), "\\xff\xc3\xa4");
}

TEST(Printable, WhatDeceivesTheEyeIsEscaped) {
  for (const char32_t point : {0x61cu,  0x200bu, 0x200cu, 0x200du, 0x200eu, 0x200fu, 0x2028u,
                               0x2029u, 0x202au, 0x202bu, 0x202cu, 0x202du, 0x202eu, 0x2060u,
                               0x2066u, 0x2067u, 0x2068u, 0x2069u, 0xfeffu, 0xe0041u}) {
    std::string text = "a";
    append_utf8(text, point);
    char escape[16];
    std::snprintf(escape, sizeof escape, "a\\u%04x", static_cast<unsigned>(point));
    EXPECT_EQ(printable(text), escape);
    EXPECT_TRUE(is_harmful(point));
  }
  for (const char32_t point :
       {0x20u, 0x7eu, 0xa0u, 0xe4u, 0x200au, 0x2010u, 0x202fu, 0x2070u, 0xfefeu, 0xfffdu, 0x1f30du})
    EXPECT_FALSE(is_harmful(point)) << static_cast<unsigned>(point);
}

TEST(Printable, LineBreaks) {
  EXPECT_EQ(printable("a\nb\tc\r\nd"), "a b c  d");
  EXPECT_EQ(printable("a\nb\tc\rd", LineBreaks::keep), "a\nb\tc d");
}

}  // namespace printable_test
}  // namespace batchfs

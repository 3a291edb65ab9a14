#include "tools/cli/text_layout.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/base/descriptor.h"

namespace batchfs {
namespace text_layout_test {

TEST(TextLayout, OfWhatIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor in(ends[0]), out(ends[1]);
  ::unsetenv("COLUMNS");
  EXPECT_EQ(text_layout(out.get()).columns, 80u);
  EXPECT_FALSE(text_layout(out.get()).wraps);
  EXPECT_FALSE(text_layout(out.get()).colour);
  ::setenv("COLUMNS", "120", 1);
  EXPECT_EQ(text_layout(out.get()).columns, 120u);
  EXPECT_FALSE(text_layout(out.get()).wraps);
  for (const char* wrong : {"", "0", "-5", "80 ", "many"}) {
    ::setenv("COLUMNS", wrong, 1);
    EXPECT_EQ(text_layout(out.get()).columns, 80u) << wrong;
  }
  ::setenv("COLUMNS", "3", 1);  // nothing fits there
  EXPECT_EQ(text_layout(out.get()).columns, 40u);
  ::unsetenv("COLUMNS");
}

TEST(TextLayout, ColoursTakeNoColumns) {
  const TextLayout plain;
  EXPECT_EQ(plain.name("t"), "t");
  TextLayout colours;
  colours.colour = true;
  EXPECT_EQ(text_columns(colours.name("t\xc3\xbc")), 2u);
  EXPECT_NE(colours.name("t"), "t");
  EXPECT_EQ(colours.name(""), "");
}

TEST(TextLayout, ShortensToColumns) {
  EXPECT_EQ(shortened("temperature", 11), "temperature");
  EXPECT_EQ(shortened("temperature", 10), "tempera...");
  EXPECT_EQ(shortened("t\xc3\xbcr\xc3\xbcr", 4), "t...");
  EXPECT_EQ(shortened("temperature", 2), "");
}

TEST(TextLayout, WrapsAtSpaces) {
  EXPECT_EQ(wrapped("one two three\n  four five six", 9),
            "one two\n  three\n  four\n    five\n    six");
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
  EXPECT_EQ(wrapped("https://a.very/long/address is", 10), "https://a.very/long/address\n  is");
  EXPECT_EQ(wrapped("", 10), "");
  EXPECT_EQ(wrapped("   ", 2), "   ");
}

TEST(TextLayout, FillsLinesWithPieces) {
  EXPECT_EQ(filled({"3 x 4", "chunks 1 x 4", "zstd"}, 2, 80), "  3 x 4, chunks 1 x 4, zstd\n");
  EXPECT_EQ(filled({"3 x 4", "chunks 1 x 4", "zstd"}, 2, 17),
            "  3 x 4,\n    chunks 1 x 4,\n    zstd\n");
  EXPECT_EQ(filled({"one two three"}, 0, 8), "one two\n  three\n");
}

}  // namespace text_layout_test
}  // namespace batchfs

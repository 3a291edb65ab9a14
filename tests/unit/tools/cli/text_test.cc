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

TEST(Text, PrintableHasNoControlCharacters) {
  EXPECT_EQ(printable(std::string("a\0b\n\x7f\xc3\xa4", 7)), "a\\x00b \\x7f\xc3\xa4");
}

}  // namespace text_test
}  // namespace batchfs

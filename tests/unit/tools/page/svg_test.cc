#include "tools/page/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace svg_test {

using testing::HasSubstr;

TEST(Svg, PicturesHaveNamesForScreenReaders) {
  const std::string picture = svg_picture("a \"b\"", 10, 20, "<g/>");
  EXPECT_THAT(picture,
              HasSubstr("viewBox=\"0 0 10 20\" role=\"img\" aria-label=\"a &quot;b&quot;\""));
  EXPECT_THAT(picture, HasSubstr("<g/>"));
}

TEST(Svg, TextsAndTipsAreEscaped) {
  EXPECT_EQ(svg_text(1, 2, "<x>", "end"),
            "<text x=\"1.0\" y=\"2.0\" text-anchor=\"end\">&lt;x&gt;</text>\n");
  EXPECT_THAT(svg_bar("bar", 0, 0, 1, 1, "<t>"), HasSubstr("<title>&lt;t&gt;</title>"));
}

TEST(Svg, BarsHaveNoLengthsBelowZero) {
  EXPECT_EQ(svg_bar("bar", 0, 0, -1, 2),
            "<rect class=\"bar\" x=\"0.00\" y=\"0.00\" width=\"0.00\" height=\"2.00\"></rect>\n");
}

}  // namespace svg_test
}  // namespace batchfs

#include "tools/page/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace html_test {

using testing::HasSubstr;
using testing::Not;

TEST(Html, Escapes) {
  EXPECT_EQ(html("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(html("\x1b\u202e é\n"), "\\x1b\\u202e é\n");
}

TEST(Html, CutsBetweenCharacters) {
  EXPECT_EQ(html_cut("éééé<", 10), "éééé&lt;");
  EXPECT_EQ(html_cut("éééééé", 5), "éé...");
}

TEST(Html, APageLoadsNothing) {
  const std::string page = page_begin("<script>alert(1)</script>", "") + page_end();
  EXPECT_THAT(page, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

// RFC 4648, section 10.
TEST(Html, PicturesAreInBase64) {
  const auto of = [](std::string_view text) { return png_url(std::as_bytes(std::span(text))); };
  EXPECT_EQ(of(""), "data:image/png;base64,");
  EXPECT_EQ(of("f"), "data:image/png;base64,Zg==");
  EXPECT_EQ(of("fo"), "data:image/png;base64,Zm8=");
  EXPECT_EQ(of("foobar"), "data:image/png;base64,Zm9vYmFy");
}

TEST(Html, FactsAreEscaped) {
  EXPECT_EQ(fact_row("<a>", "b&c"), "<tr><th scope=\"row\">&lt;a&gt;</th><td>b&amp;c</td></tr>\n");
}

}  // namespace html_test
}  // namespace batchfs

#include "bench/origin/http_request.h"

#include <gmock/gmock.h>

namespace bench {
namespace http_request_test {

using testing::ElementsAre;
using testing::Pair;

TEST(HttpRequest, HasMethodPathQueryAndHeaders) {
  const auto request = parse_request(
      "GET /a%20folder/c/0?list-type=2&prefix=x%2Fy+z&empty=&alone HTTP/1.1\r\n"
      "Host: here\r\nRANGE:bytes=0-1\r\nnonsense\r\nIf-Match:   \"tag\"\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/a folder/c/0");
  EXPECT_THAT(request->query, ElementsAre(Pair("alone", ""), Pair("empty", ""),
                                          Pair("list-type", "2"), Pair("prefix", "x/y z")));
  EXPECT_THAT(request->headers, ElementsAre(Pair("host", "here"), Pair("if-match", "\"tag\""),
                                            Pair("range", "bytes=0-1")));
}

TEST(HttpRequest, PercentsThatEncodeNothingStay) {
  EXPECT_EQ(parse_request("GET /100%/%zz%4 HTTP/1.1")->path, "/100%/%zz%4");
}

TEST(HttpRequest, WithoutALineThereIsNone) {
  for (const char* text : {"", "GET", "GET /", "\r\n", "\r\nHost: here\r\n"})
    EXPECT_FALSE(parse_request(text)) << text;
  EXPECT_TRUE(parse_request("GET / HTTP/1.1"));
}

TEST(HttpRequest, RangesAreOfWhatThereIs) {
  const auto range = [](const char* text, std::uint64_t size) {
    const auto got = parse_range(text, size);
    return got ? std::pair(got->first, got->length)
               : std::pair<std::uint64_t, std::uint64_t>(0, UINT64_MAX);
  };
  constexpr std::pair<std::uint64_t, std::uint64_t> kNone{0, UINT64_MAX};
  EXPECT_THAT(range("bytes=0-0", 10), Pair(0, 1));
  EXPECT_THAT(range("bytes=3-", 10), Pair(3, 7));
  EXPECT_THAT(range("bytes=3-99", 10), Pair(3, 7));
  EXPECT_THAT(range("bytes=-4", 10), Pair(6, 4));
  EXPECT_THAT(range("bytes=-40", 10), Pair(0, 10));
  EXPECT_THAT(range("lines=1-2", 10), Pair(0, 10));
  for (const char* none : {"bytes=10-", "bytes=5-4", "bytes=-0", "bytes=7"})
    EXPECT_EQ(range(none, 10), kNone) << none;
  EXPECT_EQ(range("bytes=0-", 0), kNone);
}

TEST(HttpRequest, XmlHasNoMarkupOfItsOwn) { EXPECT_EQ(xml_escaped("a<b>&c"), "a&lt;b>&amp;c"); }

}  // namespace http_request_test
}  // namespace bench

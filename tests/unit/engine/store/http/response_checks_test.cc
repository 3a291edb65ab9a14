#include "engine/store/http/response_checks.h"

#include <cstring>

#include <gtest/gtest.h>

namespace batchfs {

namespace response_checks_test {

HttpResponse answer(int status, HttpHeaders headers, const std::string& body) {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = Buffer(body.size());
  if (!body.empty()) std::memcpy(response.body.data(), body.data(), body.size());
  response.body_received = body.size();
  return response;
}

/// The object's size, -1 when the answer does not tell, -2 for io, -3 for corrupt.
std::int64_t check(const HttpResponse& response, std::optional<ByteRange> range = {}) {
  try {
    const std::optional<std::uint64_t> size = check_object(response, range, "place");
    return size ? static_cast<std::int64_t>(*size) : -1;
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "place");
    return error.code() == ErrorCode::io ? -2 : error.code() == ErrorCode::corrupt ? -3 : -4;
  }
}

TEST(CheckObject, Whole) {
  EXPECT_EQ(check(answer(200, {{"content-length", "3"}}, "abc")), 3);
  EXPECT_EQ(check(answer(200, {}, "abc")), 3);
  EXPECT_EQ(check(answer(200, {{"content-length", "4"}}, "abc")), -2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 0-2/3"}}, "abc")), -2);
  EXPECT_EQ(check(answer(202, {}, "abc")), -2);
}

TEST(CheckObject, Ranges) {
  const ByteRange range{2, 3};
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-4/10"}}, "abc"), range), 10);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-4/*"}}, "abc"), range), -1);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-3/*"}}, "ab"), range), -1)
      << "may be the end";
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-3/4"}}, "ab"), range), 4);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-3/5"}}, "ab"), range), -2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 1-3/10"}}, "abc"), range), -2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-4/10"}}, "ab"), range), -2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-4/4"}}, "abc"), range), -2);
  EXPECT_EQ(
      check(answer(206, {{"content-range", "bytes 2-99999999999999999999999/4"}}, "abc"), range),
      -2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes -2-4/9"}}, "abc"), range), -2);
  EXPECT_EQ(check(answer(206, {{"content-range", ""}}, "abc"), range), -2);
  EXPECT_EQ(check(answer(206, {}, "abc"), range), -2);
  const ByteRange to_end{2, UINT64_MAX};
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-4/5"}}, "abc"), to_end), 5);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 2-4/6"}}, "abc"), to_end), -2);
}

TEST(CheckObject, RangesFromTheEnd) {
  const ByteRange range{0, 3, true};
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 7-9/10"}}, "abc"), range), 10);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 0-1/2"}}, "ab"), range), 2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 6-8/10"}}, "abc"), range), -2);
  EXPECT_EQ(check(answer(206, {{"content-range", "bytes 7-9/*"}}, "abc"), range), -2);
  EXPECT_EQ(check(answer(416, {{"content-range", "bytes */0"}}, ""), range), 0);
  EXPECT_EQ(check(answer(416, {{"content-range", "bytes */5"}}, ""), range), -2);
}

TEST(Framing, AnAnswerSaysWhereItEnds) {
  EXPECT_TRUE(is_framed(answer(200, {{"content-length", "3"}}, "abc")));
  EXPECT_TRUE(is_framed(answer(200, {{"transfer-encoding", "gzip, Chunked"}}, "abc")));
  EXPECT_TRUE(is_framed(answer(206, {{"content-range", "bytes 0-2/9"}}, "abc")));
  EXPECT_FALSE(is_framed(answer(200, {}, "abc")));
  EXPECT_FALSE(is_framed(answer(200, {{"content-length", "x"}}, "abc")));
}

TEST(Encoding, IsNamedByTheAnswer) {
  EXPECT_TRUE(is_encoded(answer(200, {{"content-encoding", "gzip"}}, "abc")));
  EXPECT_FALSE(is_encoded(answer(200, {{"content-encoding", "Identity"}}, "abc")));
  EXPECT_FALSE(is_encoded(answer(200, {{"content-encoding", ""}}, "abc")));
  EXPECT_FALSE(is_encoded(answer(200, {}, "abc")));
}

TEST(RangeSupport, IsToldByAnswers) {
  const ByteRange inside{2, 3}, suffix{0, 3, true};
  const auto support = [](const HttpResponse& response, const ByteRange& range) {
    return range_support(response, range);
  };
  for (const ByteRange& range : {inside, suffix}) {
    EXPECT_EQ(support(answer(200, {}, "abc"), range), RangeSupport::as_asked);
    EXPECT_EQ(support(answer(206, {{"content-range", "bytes 2-4/5"}}, "abc"), range),
              RangeSupport::as_asked);
    EXPECT_EQ(support(answer(206, {}, "abc"), range), RangeSupport::none);
    EXPECT_EQ(support(answer(404, {}, ""), range), RangeSupport::as_asked);
  }
  for (const int status : {400, 416, 501}) {
    EXPECT_EQ(support(answer(status, {}, ""), suffix), RangeSupport::no_suffixes) << status;
    EXPECT_EQ(support(answer(status, {}, ""), inside), RangeSupport::as_asked) << status;
    EXPECT_TRUE(may_refuse_range(status));
  }
  EXPECT_FALSE(may_refuse_range(403));
  EXPECT_EQ(support(answer(416, {{"content-range", "bytes */0"}}, ""), suffix),
            RangeSupport::as_asked)
      << "an object without bytes";
  EXPECT_EQ(support(answer(206, {{"content-range", "bytes 2-4/*"}}, "abc"), suffix),
            RangeSupport::no_suffixes);
  EXPECT_EQ(support(answer(206, {{"content-range", "bytes 2-4/*"}}, "abc"), inside),
            RangeSupport::as_asked);
}

TEST(NarrowRange, IsThePartOfAWiderAnswerThatWasAskedFor) {
  const auto narrowed = [](const char* sent, ByteRange range) -> std::string {
    HttpResponse response = answer(206, {{"content-range", sent}}, "");
    const auto before = narrow_range(response, range);
    return before ? std::to_string(*before) + " " + response.headers[0].second : "no";
  };
  EXPECT_EQ(narrowed("bytes 64-191/4096", {100, 20}), "36 bytes 100-119/4096");
  EXPECT_EQ(narrowed("bytes 100-191/4096", {100, 20}), "0 bytes 100-119/4096");
  EXPECT_EQ(narrowed("bytes 64-119/4096", {100, 20}), "36 bytes 100-119/4096");
  EXPECT_EQ(narrowed("bytes 64-127/128", {100, 200}), "36 bytes 100-127/128");
  EXPECT_EQ(narrowed("bytes 64-127/128", {0, 20, true}), "44 bytes 108-127/128");
  EXPECT_EQ(narrowed("bytes 0-9/10", {2, UINT64_MAX}), "2 bytes 2-9/10");
  // The requested range itself, too few bytes, another range, an unknown size.
  EXPECT_EQ(narrowed("bytes 100-119/4096", {100, 20}), "no");
  EXPECT_EQ(narrowed("bytes 101-191/4096", {100, 20}), "no");
  EXPECT_EQ(narrowed("bytes 64-118/4096", {100, 20}), "no");
  EXPECT_EQ(narrowed("bytes 0-127/128", {128, 20}), "no");
  EXPECT_EQ(narrowed("bytes 64-191/*", {100, 20}), "no");
  EXPECT_EQ(narrowed("bytes 64-191", {100, 20}), "no");
  EXPECT_EQ(narrowed("bytes 64-191/4096", {100, 0}), "no");
}

TEST(CheckObject, PastTheEnd) {
  EXPECT_EQ(check(answer(416, {{"content-range", "bytes */10"}}, "sorry"), ByteRange{10, 3}), 10);
  EXPECT_EQ(check(answer(416, {{"content-range", "bytes */11"}}, "sorry"), ByteRange{10, 3}), -2);
  EXPECT_EQ(check(answer(416, {}, "sorry"), ByteRange{10, 3}), -1);
  EXPECT_EQ(check(answer(416, {}, "sorry")), -2);
}

TEST(CheckObject, ARangeCutOutOfTheWhole) {
  HttpResponse response = answer(200, {{"content-length", "10"}}, "abc");
  EXPECT_EQ(check(response, ByteRange{2, 3}), 10);
  EXPECT_EQ(check(response, ByteRange{7, 5}), 10);
  EXPECT_EQ(check(response, ByteRange{2, 5}), -2);
  response = answer(200, {}, "abc");
  response.body_received = 5;
  EXPECT_EQ(check(response, ByteRange{2, 9}), 5) << "it ended there";
  EXPECT_EQ(check(response, ByteRange{2, 3}), -1);
}

TEST(CheckObject, WebPages) {
  const HttpHeaders html = {{"content-type", "text/html"}};
  EXPECT_EQ(check(answer(200, html, "\n <html>")), -3);
  EXPECT_EQ(check(answer(200, html, "\xEF\xBB\xBF<!doctype html>")), -3);
  EXPECT_EQ(check(answer(200, html, "{\"zarr_format\": 2}")), 18);
  EXPECT_EQ(check(answer(200, {{"content-type", "application/octet-stream"}}, "<html>")), 6);
  EXPECT_EQ(check(answer(200, html, "abc"), ByteRange{5, 3}), -3) << "its beginning is not seen";
}

TEST(Version, IsTheTagOrTheTime) {
  EXPECT_EQ(version_of(answer(200, {{"etag", "\"a\""}, {"last-modified", "then"}}, "")), "\"a\"");
  EXPECT_EQ(version_of(answer(200, {{"last-modified", "then"}}, "")), "modified then");
  EXPECT_EQ(version_of(answer(200, {}, "")), "");
  EXPECT_EQ(unless_version("\"a\""), std::pair(std::string("If-None-Match"), std::string("\"a\"")));
  EXPECT_EQ(unless_version("modified then"),
            std::pair(std::string("If-Modified-Since"), std::string("then")));
}

TEST(RetryAfter, SecondsOrADate) {
  EXPECT_EQ(retry_after(answer(503, {}, "")), std::nullopt);
  EXPECT_EQ(retry_after(answer(503, {{"retry-after", "7"}}, "")), 7.0);
  EXPECT_EQ(retry_after(answer(503, {{"retry-after", "Sat, 01 Jan 2000 00:00:00 GMT"}}, "")), 0.0);
  const auto far = retry_after(answer(503, {{"retry-after", "Fri, 01 Jan 2100 00:00:00 GMT"}}, ""));
  ASSERT_TRUE(far);
  EXPECT_GT(*far, 1e6);
  EXPECT_EQ(retry_after(answer(503, {{"retry-after", "soon"}}, "")), std::nullopt);
}

}  // namespace response_checks_test

TEST(ResponseChecks, TellVersionsApartByWhatTheServerSays) {
  EXPECT_EQ(identity_of("\"a\"", 5), "\"a\"");
  EXPECT_EQ(identity_of("W/\"a\"", std::nullopt), "\"a\"");
  const std::string modified = "modified Sun, 22 Nov 2026 12:00:00 GMT";
  EXPECT_EQ(identity_of(modified, 5), identity_of(modified, 5));
  EXPECT_NE(identity_of(modified, 5), identity_of(modified, 6));  // within the same second
  EXPECT_NE(identity_of("", 5), identity_of("", 6));
  EXPECT_EQ(identity_of("", std::nullopt), "");
  EXPECT_EQ(identity_of(modified, std::nullopt), "");
}

}  // namespace batchfs

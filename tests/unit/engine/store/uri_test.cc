#include "engine/store/uri.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {

namespace uri_test {

TEST(Uri, HasParts) {
  const Uri uri = parse_uri("HTTPS://me:pa%40ss@Example.ORG:8443/a/b%20c?sig=x&y#part");
  EXPECT_EQ(uri.scheme, "https");
  EXPECT_EQ(uri.userinfo, "me:pa@ss");
  EXPECT_EQ(uri.host, "example.org");
  EXPECT_EQ(uri.port, "8443");
  EXPECT_EQ(uri.path, "/a/b%20c");
  EXPECT_EQ(uri.query, "sig=x&y");
  EXPECT_EQ(uri.authority(), "example.org:8443");
  EXPECT_EQ(uri.text(), "https://example.org:8443/a/b%20c") << "nothing secret";
}

TEST(Uri, PartsMayBeAbsent) {
  const Uri uri = parse_uri("http://[::1]");
  EXPECT_EQ(uri.host, "[::1]");
  EXPECT_EQ(uri.port + uri.path + uri.query + uri.userinfo, "");
  EXPECT_EQ(parse_uri("http://[::1]:80/x").port, "80");
  EXPECT_EQ(parse_uri("s3://bucket?versions").query, "versions");
  EXPECT_EQ(parse_uri("http://h#a?b").query, "");
}

TEST(Uri, ABucketOfDigitsIsNotAnAddress) {
  for (const char* bucket : {"2024", "20241128", "0x10", "010.0.0.1", "my_bucket", "a+b"})
    EXPECT_EQ(parse_uri(std::string("s3://") + bucket + "/a").host, bucket);
}

TEST(Uri, NonsenseIsRefusedWithoutRepeatingIt) {
  for (const std::string text :
       {"", "path", "://host", "http://", "http:///path", "http://user:secret@", "http://h:port/",
        "http://h:123456/", "http://[::1/", "http://secret host/", "http://h/secret\n"}) {
    try {
      parse_uri(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text;
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
    }
  }
}

TEST(PercentCoding, KeepsTheUnreserved) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("a/b=c +%\xC3\xA4"), "a%2Fb%3Dc%20%2B%25%C3%A4");
  EXPECT_EQ(percent_encode("a/b", "/"), "a/b");
  EXPECT_EQ(percent_decode("a%2Fb%3Dc%20%2B%25%C3%a4"), "a/b=c +%\xC3\xA4");
  EXPECT_EQ(percent_decode("%"), "%");
  EXPECT_EQ(percent_decode("%2"), "%2");
  EXPECT_EQ(percent_decode("%zz%41"), "%zzA");
}

TEST(FileUrl, NamesAPathOfThisMachine) {
  EXPECT_EQ(path_of_file_url("file:///data/s.zarr"), "/data/s.zarr");
  EXPECT_EQ(path_of_file_url("file://localhost/data/s.zarr"), "/data/s.zarr");
  EXPECT_EQ(path_of_file_url("file://data/s.zarr"), "data/s.zarr");
  EXPECT_EQ(path_of_file_url("file://localhost.zarr"), "localhost.zarr");
}

}  // namespace uri_test

}  // namespace batchfs

#include "engine/store/cloud/bucket_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/fake_store_environment.h"

namespace batchfs {
namespace bucket_url_test {

using testing::HasSubstr;
using testing::Not;

TEST(BucketUrl, Splits) {
  const BucketUrl parts = parse_bucket_url("s3://my-bucket/a b/dt=2020%41?x/");
  EXPECT_EQ(parts.scheme, "s3");
  EXPECT_EQ(parts.bucket, "my-bucket");
  EXPECT_EQ(parts.prefix, "a b/dt=2020%41?x");  // a key, not a URL's path: nothing is decoded
  EXPECT_EQ(parse_bucket_url("gs://b").prefix, "");
  EXPECT_EQ(parse_bucket_url("gs://b//a//c//").prefix, "a//c");
}

TEST(BucketUrl, Refuses) {
  for (const char* wrong :
       {"", "s3:/b", "s3://", "s3:///key", "s3://b/../c", "s3://b/./c", "s3://b/a\nb"})
    EXPECT_EQ(error_of([&] { parse_bucket_url(wrong); }).code(), ErrorCode::invalid_argument)
        << wrong;
  EXPECT_THAT(error_of([] { parse_bucket_url("s3://KEY:HUSH@b/c"); }).what(),
              Not(HasSubstr("HUSH")));
}

TEST(BucketUrl, Endpoints) {
  EXPECT_EQ(normal_endpoint("http://LOCALHOST:9000//"), "http://localhost:9000");
  EXPECT_EQ(normal_endpoint("https://host:443/base/"), "https://host/base");
  EXPECT_EQ(normal_endpoint("http://host:443"), "http://host:443");
  for (const char* wrong :
       {"localhost:9000", "s3://host", "https://", "https://u:HUSH@host", "https://host?HUSH=1"}) {
    const Error error = error_of([&] { normal_endpoint(wrong); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << wrong;
    EXPECT_THAT(error.what(), Not(HasSubstr("HUSH")));
  }
}

TEST(BucketUrl, JoinsKeys) {
  EXPECT_EQ(join_key("a", "b/c"), "a/b/c");
  EXPECT_EQ(join_key("", "b"), "b");
  EXPECT_EQ(join_key("a", ""), "a");
}

}  // namespace bucket_url_test
}  // namespace batchfs

#include "engine/store/cloud/signing/sigv4.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/store/uri.h"

namespace batchfs {
namespace sigv4_test {

using testing::EndsWith;
using testing::HasSubstr;

// The keys of AWS's published examples.
const AwsKeys kS3Keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const AwsKeys kSuiteKeys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};

std::chrono::system_clock::time_point at(std::time_t seconds) {
  return std::chrono::system_clock::from_time_t(seconds);
}
const auto kMay2013 = at(1369353600);     // 2013-05-24T00:00:00Z
const auto kAugust2015 = at(1440938160);  // 2015-08-30T12:36:00Z

std::string authorization(const SigV4Request& request, const AwsKeys& keys,
                          const std::string& region, std::chrono::system_clock::time_point now) {
  for (const auto& [name, value] : sign_v4(request, keys, {region}, now))
    if (name == "Authorization") return value;
  return "";
}

// "Signature Calculations for the Authorization Header", Amazon S3 API Reference.
TEST(SigV4, PublishedS3Examples) {
  SigV4Request object{
      "GET", "examplebucket.s3.amazonaws.com", "/test.txt", {}, {{"Range", "bytes=0-9"}}};
  EXPECT_EQ(authorization(object, kS3Keys, "us-east-1", kMay2013),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  SigV4Request lifecycle{"GET", "examplebucket.s3.amazonaws.com", "/", {{"lifecycle", ""}}};
  EXPECT_THAT(authorization(lifecycle, kS3Keys, "us-east-1", kMay2013),
              EndsWith("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  SigV4Request listing{
      "GET", "examplebucket.s3.amazonaws.com", "/", {{"prefix", "J"}, {"max-keys", "2"}}};
  EXPECT_THAT(authorization(listing, kS3Keys, "us-east-1", kMay2013),
              EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

// AWS Signature Version 4 test suite: get-vanilla and get-vanilla-query-order-key-case.
TEST(SigV4, TestSuite) {
  SigV4Request request{
      "GET", "example.amazonaws.com", "/", {}, {{"X-Amz-Date", "20150830T123600Z"}}};
  EXPECT_THAT(authorization_v4(request, kSuiteKeys, {"us-east-1", "service"}, "20150830T123600Z"),
              EndsWith("5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
  request.query = {{"Param2", "value2"}, {"Param1", "value1"}};
  EXPECT_THAT(authorization_v4(request, kSuiteKeys, {"us-east-1", "service"}, "20150830T123600Z"),
              EndsWith("b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

// The values below are botocore 1.44.5's (S3SigV4Auth) for the same URLs.
TEST(SigV4, HardKeys) {
  SigV4Request request{"GET",
                       "b.s3.eu-central-1.amazonaws.com",
                       "/" + percent_encode("dt=2020-01-01/t 2m/é+~*/0.0", "/"),
                       {},
                       {{"Range", "bytes=-4096"}}};
  EXPECT_EQ(request.path, "/dt%3D2020-01-01/t%202m/%C3%A9%2B~%2A/0.0");
  EXPECT_THAT(authorization(request, kSuiteKeys, "eu-central-1", kAugust2015),
              EndsWith("5526ed6457bdf5a4bea371dceb2ba2c158c902092c9a8a7eb7bcafa9825bd5a2"));
}

TEST(SigV4, SessionTokenAndRequesterPays) {
  AwsKeys keys = kSuiteKeys;
  keys.session_token = "SESSION/token+==";
  const SigV4Request request{
      "GET", "127.0.0.1:9000", "/bucket/a%3Db/.zarray", {}, {{"x-amz-request-payer", "requester"}}};
  EXPECT_EQ(authorization(request, keys, "us-east-1", kAugust2015),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-request-payer;x-amz-security-"
            "token, "
            "Signature=1c96a0d15bc7b4ac9836fc517d7b51200691a09cf3306e58ebe6c0900a5f9133");
  std::map<std::string, std::string> added;
  for (const auto& [name, value] : sign_v4(request, keys, {"us-east-1"}, kAugust2015))
    added[name] = value;
  EXPECT_EQ(added["x-amz-security-token"], "SESSION/token+==");
  EXPECT_EQ(added["x-amz-date"], "20150830T123600Z");
  EXPECT_EQ(added["x-amz-content-sha256"], kEmptyPayload);
}

TEST(SigV4, ListingWithContinuation) {
  const SigV4Request request{"GET",
                             "b.s3.eu-central-1.amazonaws.com",
                             "/",
                             {{"list-type", "2"},
                              {"delimiter", "/"},
                              {"prefix", "a b/é"},
                              {"continuation-token", "1/+="},
                              {"Zed", ""},
                              {"abc", "1"}}};
  EXPECT_THAT(authorization(request, kSuiteKeys, "eu-central-1", kAugust2015),
              EndsWith("c83db6638604cc173673c898b9f1c4e4a8dc3554e26dab8ab005c2a525709960"));
}

TEST(SigV4, CanonicalHeadersAreTrimmedFoldedAndJoined) {  // test suite: get-header-value-*
  const SigV4Request request{
      "GET",
      "h",
      "",
      {},
      {{"My-Header2", "  a   b   c  "}, {"MY-HEADER1", "v1"}, {"my-header1", "v2"}}};
  EXPECT_EQ(canonical_request_v4(request),
            std::string("GET\n/\n\nhost:h\nmy-header1:v1,v2\nmy-header2:a b c\n\n"
                        "host;my-header1;my-header2\n") +
                kEmptyPayload);
}

TEST(SigV4, UnsignedPayload) {
  SigV4Request request{"GET", "h", "/"};
  request.payload_hash = kUnsignedPayload;
  EXPECT_THAT(canonical_request_v4(request), EndsWith("\nUNSIGNED-PAYLOAD"));
  EXPECT_EQ(sign_v4(request, kSuiteKeys, {"us-east-1"}, kAugust2015).front().second,
            "UNSIGNED-PAYLOAD");
}

}  // namespace sigv4_test
}  // namespace batchfs

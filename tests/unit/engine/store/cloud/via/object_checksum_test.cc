#include "engine/store/cloud/via/object_checksum.h"

#include <algorithm>
#include <span>

#include <gtest/gtest.h>

namespace batchfs {

namespace object_checksum_test {

// Digests of kBody, by Python's hashlib.
const std::string kBody = "hello zarr";
const std::string kMd5 = "nFNHjAkZfyjGTeqVwm4VtQ==";
const std::string kMd5Digits = "9c53478c09197f28c64dea95c26e15b5";
const std::string kSha256 = "pQrA2dmiOsaSx2XbE9dxku0fHSJLa3v4zoUvyzoxnYI=";

HttpResponse answer(HttpHeaders headers, const std::string& body = kBody) {
  HttpResponse response{.status = 200, .headers = std::move(headers)};
  response.body = Buffer(body.size());
  std::copy_n(std::as_bytes(std::span(body)).data(), body.size(), response.body.data());
  response.body_received = body.size();
  return response;
}

TEST(ObjectChecksum, IsWhereServicesPutIt) {
  for (const HttpHeaders& headers :
       {HttpHeaders{{"content-md5", kMd5}},
        {{"x-ms-blob-content-md5", kMd5}},
        {{"x-goog-hash", "crc32c=AAAAAA==,md5=" + kMd5}},
        {{"x-goog-hash", "md5=" + kMd5 + ",crc32c=AAAAAA=="}},
        {{"x-amz-checksum-sha256", kSha256}},
        {{"x-amz-id-2", "x"}, {"etag", '"' + kMd5Digits + '"'}},
        {{"x-amz-server-side-encryption", "AES256"}, {"etag", '"' + kMd5Digits + '"'}}}) {
    EXPECT_EQ(fits_checksum(answer(headers)), true) << headers.front().first;
    EXPECT_EQ(fits_checksum(answer(headers, "hello zarR")), false) << headers.front().first;
  }
}

TEST(ObjectChecksum, IsNotKnownElsewhere) {
  const std::string tag = '"' + kMd5Digits + '"';
  for (const HttpHeaders& headers :
       {HttpHeaders{},
        {{"etag", tag}},  // of an unknown server: arbitrary
        {{"x-amz-id-2", "x"}, {"etag", '"' + kMd5Digits + "-2\""}},
        {{"x-amz-id-2", "x"}, {"etag", "W/" + tag}},
        {{"x-amz-server-side-encryption", "aws:kms"}, {"etag", tag}},
        {{"x-amz-server-side-encryption-customer-algorithm", "AES256"}, {"etag", tag}},
        {{"x-amz-checksum-sha256", kSha256 + "-3"}},
        {{"x-goog-hash", "crc32c=AAAAAA=="}}})
    EXPECT_EQ(fits_checksum(answer(headers, "another")), std::nullopt);
}

TEST(ObjectChecksum, IsOfWholeObjects) {
  HttpResponse part = answer({{"content-md5", kMd5}, {"content-range", "bytes 0-9/20"}});
  part.status = 206;
  EXPECT_EQ(fits_checksum(part), std::nullopt);
  part.headers.back().second = "bytes 0-9/10";
  EXPECT_EQ(fits_checksum(part), true);
  HttpResponse cut = answer({{"content-md5", kMd5}});
  cut.body_received = 100;
  EXPECT_EQ(fits_checksum(cut), std::nullopt);
}

TEST(ObjectChecksum, OfBadHeadersIsFalse) {
  EXPECT_EQ(fits_checksum(answer({{"content-md5", "\xff not base64"}})), false);
  EXPECT_EQ(fits_checksum(answer({{"x-goog-hash", "md5="}})), std::nullopt);
  EXPECT_EQ(fits_checksum(answer({{"content-md5", kMd5}}, "")), false);
}

}  // namespace object_checksum_test

}  // namespace batchfs

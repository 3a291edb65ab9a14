#include "engine/store/wrong_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace wrong_bytes_test {

using ::testing::HasSubstr;

std::string described(std::string_view text) {
  return describe_wrong_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(WrongBytes, AreNamedByTheirFirstBytes) {
  EXPECT_THAT(described("\x1f\x8b\x08 more"), HasSubstr("gzip"));
  EXPECT_THAT(described("\x28\xb5\x2f\xfd more"), HasSubstr("zstd"));
  EXPECT_THAT(described("PK\3\4 more"), HasSubstr(".zip"));
  for (const char* page :
       {"<!DOCTYPE html>", "\r\n <HTML>", "\xEF\xBB\xBF<html lang", "<?xml version"})
    EXPECT_THAT(described(page), HasSubstr("web page")) << page;
  for (const char* other : {"", "{\"zarr_format\": 3}", "< 3", "PK", "\x1f", "<h1>"})
    EXPECT_EQ(described(other), "") << other;
}

TEST(WrongBytes, ACompressionOfTheObjectsOwnIsNoFault) {
  const std::string_view text = "\x28\xb5\x2f\xfd more";
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  EXPECT_EQ(describe_wrong_bytes(bytes, FileCompression::zstd), "");
  EXPECT_THAT(describe_wrong_bytes(bytes, FileCompression::gzip), HasSubstr("zstd"));
}

TEST(WrongBytes, AnErrorSaysWhatCame) {
  const Error error(ErrorCode::corrupt, "not valid JSON", "zarr.json");
  const std::string_view page = "<html>", document = "{}";
  const Error with = with_wrong_bytes(error, std::as_bytes(std::span(page.data(), page.size())));
  EXPECT_EQ(with.code(), ErrorCode::corrupt);
  EXPECT_EQ(with.where(), "zarr.json");
  EXPECT_THAT(with.why(), testing::StartsWith("not valid JSON; it is a web page"));
  EXPECT_EQ(
      with_wrong_bytes(error, std::as_bytes(std::span(document.data(), document.size()))).why(),
      error.why());
}

}  // namespace wrong_bytes_test
}  // namespace batchfs

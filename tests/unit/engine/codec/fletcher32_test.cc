#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/json.h"
#include "engine/codec/codecs.h"

namespace batchfs {
namespace fletcher32_test {

std::string decoded(const std::string& data, std::array<unsigned char, 4> sum) {
  std::string in = data;
  for (const unsigned char byte : sum) in += static_cast<char>(byte);
  ChunkLayout layout;
  const Json none = Json::object();
  const auto codec = make_fletcher32(JsonRef(none, ""), layout);
  std::string out(data.size(), '?');
  const std::size_t got =
      codec->decode(std::as_bytes(std::span(in)), std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(got, data.size());
  EXPECT_EQ(codec->encoded_size(got), in.size());
  return out;
}

// Sums by numcodecs 0.16.6.
TEST(Fletcher32, ChecksAndDropsTheSum) {
  EXPECT_EQ(decoded("a", {0x00, 0x61, 0x00, 0x61}), "a");
  EXPECT_EQ(decoded("abcde", {0xc7, 0x29, 0xf0, 0x4f}), "abcde");
  EXPECT_EQ(decoded("abcde", {0x29, 0xc7, 0x4f, 0xf0}), "abcde");  // as HDF5 1.6.2 wrote it
  std::string many;
  for (int i = 0; i < 9 * 256; ++i) many += static_cast<char>(i);
  many += 'x';
  EXPECT_EQ(decoded(many, {0x3e, 0x3a, 0xe2, 0xb6}), many);
}

TEST(Fletcher32, RefusesWhatIsDamaged) {
  EXPECT_THROW(decoded("abcdf", {0xc7, 0x29, 0xf0, 0x4f}), Error);
  EXPECT_THROW(decoded("abcde", {0xc7, 0x29, 0xf0, 0x4e}), Error);
  ChunkLayout layout;
  const Json none = Json::object();
  const auto codec = make_fletcher32(JsonRef(none, ""), layout);
  std::array<std::byte, 8> bytes{};
  EXPECT_THROW(codec->decode(std::span(bytes).first(3), bytes), Error);
  EXPECT_THROW(codec->decode(bytes, std::span(bytes).first(3)), Error);
}

}  // namespace fletcher32_test
}  // namespace batchfs

#pragma once
// Common parts of the tests of image codecs, whose libraries a build or a machine may lack.

#include <string>

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {

/// Skips without the library.
class ImageCodec : public testing::Test {
 protected:
  explicit ImageCodec(std::string name) : name_(std::move(name)) {}
  void SetUp() override {
    try {
      make_codec(name_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      EXPECT_THAT(error.what(), testing::AnyOf(testing::HasSubstr("built without"),
                                               testing::HasSubstr("needs the library")));
      GTEST_SKIP() << error.what();
    }
  }

  void expect_image(std::string_view stored, std::string_view values,
                    std::string_view configuration = "{}") const {
    const Bytes wanted = hex(values);
    const auto codec = make_codec(name_, configuration);
    EXPECT_EQ(decode(*codec, hex(stored), wanted.size()), wanted) << configuration;
    EXPECT_GE(codec->encoded_bound(wanted.size()), hex(stored).size());
    EXPECT_EQ(decode(*codec, hex(stored), 3 * wanted.size()), wanted) << "in a larger chunk";
    EXPECT_THAT(failure([&] { decode(*codec, hex(stored), wanted.size() - 1); }),
                testing::HasSubstr("larger than the chunk"));
  }

  /// An image that was cut off is an error; other damage is one, or gives other values.
  void expect_damage_is_bounded(std::string_view stored, std::size_t size) const {
    const auto codec = make_codec(name_);
    const Bytes whole = hex(stored);
    for (std::size_t length = 0; length + 1 < whole.size(); ++length)
      EXPECT_TRUE(fails(*codec, slice(whole, 0, length), size)) << length;
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      Bytes damaged = whole;
      damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      fails(*codec, damaged, size);
    }
  }

  std::string refused(std::string_view configuration) const {
    return refusal(name_, configuration);
  }

  const std::string name_;
};

}  // namespace batchfs

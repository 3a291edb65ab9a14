#include "tests/unit/engine/codec/optional/images.h"

// The vectors and values are imagecodecs', of 8 rows and 8 columns.

namespace batchfs {
namespace webp_test {

class WebpTest : public ImageCodec {
 protected:
  WebpTest() : ImageCodec("imagecodecs_webp") {}
};

constexpr std::string_view kRgb =
    "5249464638000000574542505650384c2c0000002f07c00100cd6544ff631711fd0f286adb88e9a0d01bfcb1deef"
    "080cbb5830f1b79b47065d3101997d2f6f00";

constexpr std::string_view kRgbValues =
    "0014ff0317fc061af9091df60c20f30f23f01226ed1529ea182ce71b2fe41e32e12135de2438db273bd82a3ed52d"
    "41d23044cf3347cc364ac9394dc63c50c33f53c04256bd4559ba485cb74b5fb44e62b15165ae5468ab576ba85a6e"
    "a55d71a260749f63779c667a99697d966c80936f839072868d75898a788c877b8f847e928181957e84987b879b78"
    "8a9e758da17290a46f93a76c96aa6999ad669cb0639fb360a2b65da5b95aa8bc57abbf54aec251b1c54eb4c84bb7"
    "cb48bace45bdd142";

constexpr std::string_view kRgba =
    "5249464640000000574542505650384c330000002f07c00110cd6544ff631711fd0f286adb88e9a0d01bfcb1deef"
    "080cbb5830f1b79b47065d04d9b6a16d97f80464dabb97bf0100";

constexpr std::string_view kRgbaValues =
    "0014ff000317fc03061af906091df6090c20f30c0f23f00f1226ed121529ea15182ce7181b2fe41b1e32e11e2135"
    "de212438db24273bd8272a3ed52a2d41d22d3044cf303347cc33364ac936394dc6393c50c33c3f53c03f4256bd42"
    "4559ba45485cb7484b5fb44b4e62b14e5165ae515468ab54576ba8575a6ea55a5d71a25d60749f6063779c63667a"
    "9966697d96696c80936c6f83906f72868d7275898a75788c87787b8f847b7e92817e81957e8184987b84879b7887"
    "8a9e758a8da1728d90a46f9093a76c9396aa699699ad66999cb0639c9fb3609fa2b65da2a5b95aa5a8bc57a8abbf"
    "54abaec251aeb1c54eb1b4c84bb4b7cb48b7bace45babdd142bd";

TEST_F(WebpTest, DecodesWithAndWithoutAlpha) {
  expect_image(kRgb, kRgbValues);
  expect_image(kRgb, kRgbValues, R"({"hasalpha": false, "index": 0})");
  expect_image(kRgba, kRgbaValues);
  expect_image(kRgba, kRgbaValues, R"({"hasalpha": true})");
}

TEST_F(WebpTest, AnImageWithoutAlphaIsOpaque) {
  std::string opaque;
  for (std::size_t at = 0; at < kRgbValues.size(); at += 6)
    opaque += std::string(kRgbValues.substr(at, 6)) + "ff";
  expect_image(kRgb, opaque, R"({"hasalpha": true})");
}

TEST_F(WebpTest, DamageStaysInsideTheChunk) {
  expect_damage_is_bounded(kRgb, 192);
  expect_damage_is_bounded(kRgba, 256);
}

TEST_F(WebpTest, OtherImagesThanTheFirstAreRefused) {
  EXPECT_NE(refused(R"({"index": 1})"), "no error");
}

}  // namespace webp_test
}  // namespace batchfs

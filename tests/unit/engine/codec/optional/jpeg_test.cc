#include "tests/unit/engine/codec/optional/images.h"

// The vectors and values are imagecodecs', of 8 rows and 8 columns.

namespace batchfs {
namespace jpeg_test {

class JpegTest : public ImageCodec {
 protected:
  JpegTest() : ImageCodec("imagecodecs_jpeg") {}
};

constexpr std::string_view kGray =
    "ffd8ffe000104a46494600010100000100010000ffdb004300030202030202030303030403030405080505040405"
    "0a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f171816141812141514ffc000"
    "0b080008000801011100ffc40014000100000000000000000000000000000007ffc4001910000105000000000000"
    "000000000000000005082432a2ffda0008010100003f00264464958183ffd9";

constexpr std::string_view kGrayValues =
    "000306090c0f1215181b1e2124272a2d3133373a3c3f4345484a4d505356595c6164676a6d707376787b7e818487"
    "8a8d9193979a9c9fa3a5a8abaeb1b4b7babd";

constexpr std::string_view kColors =
    "ffd8ffe000104a46494600010100000100010000ffdb004300030202030202030303030403030405080505040405"
    "0a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f171816141812141514ffdb00"
    "430103040405040509050509140d0b0d141414141414141414141414141414141414141414141414141414141414"
    "1414141414141414141414141414141414141414ffc00011080008000803012200021101031101ffc40015000101"
    "00000000000000000000000000000006ffc4001910010002030000000000000000000000000005082432a2ffc400"
    "1501010100000000000000000000000000000506ffc40020110000020b0000000000000000000000000004010203"
    "060711132431b1d1ffda000c03010002110311003f00998aaadae1f20260e4587aeaa6e37d06aa4584b03fffd9";

constexpr std::string_view kRgb =
    "0516e80719e90b1ce60d1fe31021e01224dc1728da192ada192be51b2ee41e31e32234de2437db2739d72c3cd72e"
    "3fd53145cc3347ca364bc83a4fc63c50c13f54bf4356bd465abd485cb34a5fb24d63af5165ac5467a9566aa55a6d"
    "a55c70a561749e63769e677a9b697d986d7f956f829173858f768990788b877a8e857d918581948183977e869979"
    "899d788ba07990a56d93a86f95ab6d99ae699ab0659eb462a0b661a3ba60a4b96aa7bd6baac169acc466afc561b2"
    "c95fb6cc5db8cf5d";

constexpr std::string_view kYCbCr =
    "29ec662beb662ee86730e56732e26834df6837dc6939db693be0683dde6840dc6842d86944d56946d26a49d06b4b"
    "ce6b4ec76b50c56b53c26b56bf6c57bc6d5ab96d5cb76e5fb56e60af6f62ad6f65aa6f67a77069a4716ba1716e9f"
    "72709e727398737597737894747a91747c8e757e8b75818876848776858177877f778a7d778c7a788e7778907379"
    "93717995707998687a9b677a9d657aa0617ba15e7ba45b7ca6597ca9577caa5c7cad5b7cb0587cb2557cb3527db6"
    "4f7db94c7ebb4b7e";

// The tables beside the image, and all that comes before the scan, in base64.
constexpr std::string_view kBare =
    "ffd8ffc0000b080008000801011100ffda0008010100003f00264464958183ffd9";

constexpr std::string_view kTables =
    "/9j/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8XGBYUGBIU"
    "FRT/xAAUAAEAAAAAAAAAAAAAAAAAAAAH/8QAGRAAAQUAAAAAAAAAAAAAAAAAAAUIJDKi/9k=";

constexpr std::string_view kScan = "ffda0008010100003f00264464958183";

constexpr std::string_view kHeader =
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsL"
    "EBYQERMUFRUVDA8XGBYUGBIUFRT/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAB//EABkQAAEFAAAAAAAA"
    "AAAAAAAAAAAFCCQyog==";

TEST_F(JpegTest, DecodesGrayAndColors) {
  expect_image(kGray, kGrayValues);
  expect_image(kColors, kRgb);
}

TEST_F(JpegTest, ColorSpacesAreChosenByNameOrNumber) {
  for (const char* same : {R"({"colorspace_data": 2})", R"({"colorspace_data": "rgb"})",
                           R"({"colorspace_jpeg": "YCBCR", "colorspace_data": "RGB"})",
                           R"({"colorspace_jpeg": null, "colorspace_data": 0})"})
    expect_image(kColors, kRgb, same);
  // No conversion: the image is said to be RGB, or no other space is wanted.
  for (const char* stored :
       {R"({"colorspace_data": 3})", R"({"colorspace_data": "YCbCr"})", R"({"colorspace_jpeg": 3})",
        R"({"colorspace_jpeg": "RGB", "colorspace_data": "RGB"})"})
    expect_image(kColors, kYCbCr, stored);
  EXPECT_THAT(refused(R"({"colorspace_data": "CFA"})"), testing::HasSubstr("not one of JPEG's"));
  EXPECT_NE(refused(R"({"colorspace_data": 6})"), "no error");
  EXPECT_THAT(failure([] {
                decode(*make_codec("imagecodecs_jpeg", R"({"colorspace_data": "CMYK"})"),
                       hex(kColors), 1000);
              }),
              testing::HasSubstr("are not supported: Unsupported color conversion"));
}

TEST_F(JpegTest, TablesMayLieBesideTheImage) {
  expect_image(kBare, kGrayValues, fmt::format(R"({{"tables": "{}"}})", kTables));
  EXPECT_TRUE(fails(*make_codec("imagecodecs_jpeg"), hex(kBare), 64)) << "without its tables";
  EXPECT_NE(refused(R"({"tables": "?"})"), "no error");
}

TEST_F(JpegTest, AHeaderThatAllTilesShareComesFirst) {
  expect_image(kScan, kGrayValues, fmt::format(R"({{"header": "{}"}})", kHeader));
}

TEST_F(JpegTest, DamageStaysInsideTheChunk) {
  expect_damage_is_bounded(kGray, 64);
  expect_damage_is_bounded(kColors, 192);
}

}  // namespace jpeg_test
}  // namespace batchfs

#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python, of a = np.arange(30) ** 2:
// imagecodecs.szip_encode(a.astype(TYPE).tobytes(), OPTIONS, BLOCK, BITS, SCANLINE,
// header=HEADER).hex(), which is what h5py's HDF5 decodes.

namespace batchfs {
namespace szip_test {

std::string configuration(int options, int block, int bits, int scanline, bool header = true) {
  return fmt::format(R"({{"options_mask": {}, "pixels_per_block": {}, "bits_per_pixel": {},
                          "pixels_per_scanline": {}, "header": {}}})",
                     options, block, bits, scanline, header);
}

template <class T>
Bytes squares() {
  std::vector<T> values;
  for (int i = 0; i < 30; ++i) values.push_back(static_cast<T>(i * i));
  return bytes_of(values);
}

class Szip : public testing::Test {
 protected:
  void SetUp() override {
    try {
      make_codec("imagecodecs_szip", configuration(32, 8, 8, 16));
    } catch (const Error& error) {
      // In a build without libaec, or if it is not installed.
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      EXPECT_THAT(error.what(),
                  testing::AnyOf(testing::HasSubstr("built without libaec (BATCHFS_SZIP)"),
                                 testing::HasSubstr("needs the library libaec")));
      GTEST_SKIP() << error.what();
    }
  }
};

constexpr std::string_view kInts =  // "<i4", 141, 8, 32, 20, True: padded and split
    "78000000bea4405242507a028b23cc854e270d9081f01490000f2173c82280e349b30803f82000004784aaa492488f"
    "810204";
constexpr std::string_view kShorts =  // "<u2", 169, 8, 16, 30, True: padded
    "3c00000040000d49130e5935555f08ca74ada6492493e1194e95b4eaabbd14d55d900000";
constexpr std::string_view kBytes =  // "u1", 169, 8, 8, 15, False
    "801a92261cb2d555f84653a5607e1ff21444a4e5256fdc80c4ccd5de9200";
constexpr std::string_view kDoubles =  // ">f8", 48, 2, 64, 5, True: the most significant byte first
    "f0000000c00fc984100820104020804100f00f0fde455e05394adc0660d64cca4dc36c23504627926b08c5064922"
    "300008007c07fe3003802077f20f0001881fe9803c80070090f3f11ffc03c467fc87fc3780000800100020004000"
    "80010002000400080010002000400080010002000400080010002000400080010002000400080010002000400080"
    "01";
constexpr std::string_view kTwentyBits =  // "<u4", 40, 16, 20, 32, True: as stored
    "780000002800007aa9248888a4f135713571351eaaaaaaff04314724b34f453557640000";

TEST_F(Szip, DecodesWhatLibaecWrote) {
  const auto check = [](std::string_view vector, const std::string& options, const Bytes& wanted) {
    const auto codec = make_codec("imagecodecs_szip", options);
    EXPECT_EQ(decode(*codec, hex(vector), wanted.size()), wanted) << options;
  };
  check(kInts, configuration(141, 8, 32, 20), squares<std::int32_t>());
  check(kShorts, configuration(169, 8, 16, 30), squares<std::uint16_t>());
  check(kBytes, configuration(169, 8, 8, 15, false), squares<std::uint8_t>());
  Bytes doubles = squares<double>();
  for (std::size_t i = 0; i < doubles.size(); i += 8)
    std::reverse(doubles.begin() + static_cast<std::ptrdiff_t>(i),
                 doubles.begin() + static_cast<std::ptrdiff_t>(i + 8));
  check(kDoubles, configuration(48, 2, 64, 5), doubles);
  check(kTwentyBits, configuration(40, 16, 20, 32), squares<std::uint32_t>());
  // A chunk of a file may be smaller than the room for it.
  EXPECT_EQ(decode(*make_codec("imagecodecs_szip", configuration(141, 8, 32, 20)), hex(kInts), 400),
            squares<std::int32_t>());
}

TEST_F(Szip, DamageStaysInsideTheChunk) {
  const auto codec = make_codec("imagecodecs_szip", configuration(141, 8, 32, 20));
  const Bytes whole = hex(kInts);
  for (std::size_t length = 0; length + 1 < whole.size(); ++length)
    EXPECT_TRUE(fails(*codec, slice(whole, 0, length), 120)) << length;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    fails(*codec, damaged, 120);  // or other values, as there is no checksum
  }
  EXPECT_TRUE(fails(*codec, whole, 119));                        // more than the chunk holds
  EXPECT_TRUE(fails(*codec, hex("03000000ffffffffffffff"), 8));  // no whole sample
  EXPECT_TRUE(fails(*make_codec("imagecodecs_szip", configuration(169, 8, 8, 15, false)),
                    hex(kBytes), 4000));  // less than the chunk holds
}

TEST_F(Szip, MemoryIsBounded) {
  const auto codec = make_codec("imagecodecs_szip", configuration(32, 8, 32, 20));
  EXPECT_EQ(codec->scratch_bytes(120), 2 * 24 * 3u);  // bytes of lines of 20, padded to 24
  EXPECT_GE(codec->encoded_bound(120), hex(kInts).size());
  EXPECT_EQ(make_codec("imagecodecs_szip", configuration(32, 8, 16, 16))->scratch_bytes(120), 0u);
}

TEST_F(Szip, ParametersAreChecked) {
  const auto refused = [](const std::string& options) {
    return refusal("imagecodecs_szip", options);
  };
  EXPECT_THAT(refused("{}"), testing::HasSubstr("options_mask"));
  EXPECT_THAT(refused(configuration(32, 7, 8, 16)), testing::HasSubstr("an even number"));
  EXPECT_THAT(refused(configuration(32, 8, 31, 16)), testing::HasSubstr("samples of up to 24"));
  for (const auto& options :
       {configuration(-1, 8, 8, 16), configuration(32, 64, 8, 16), configuration(32, 8, 0, 16),
        configuration(32, 8, 65, 16), configuration(32, 8, 8, 0), configuration(32, 8, 8, 5000)})
    EXPECT_NE(refused(options), "no error") << options;
}

}  // namespace szip_test
}  // namespace batchfs

#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import lzma, numpy as np; from numcodecs import LZMA
// a = (np.arange(96) // 5).astype("<i4")
// delta_lzma2 = [dict(id=lzma.FILTER_DELTA, dist=4), dict(id=lzma.FILTER_LZMA2, preset=1)]
// lzma1 = [dict(id=lzma.FILTER_LZMA1, dict_size=4096, lc=2, lp=1, pb=0)]

namespace batchfs {
namespace lzma_test {

Bytes values() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

TEST(Lzma, DecodesXzWithEveryCheck) {
  const auto codec =
      make_codec("lzma", R"({"format": 1, "check": -1, "preset": null, "filters": null})");
  // LZMA(preset=0).encode(a)
  EXPECT_EQ(expect_decodes(*codec,
                           hex("fd377a585a000004e6d6b446020021010c0000008f98419ce0017f00315d00006e0"
                               "049a80a002c5fa12bd34ed1"
                               "7cc9e332270f5f614e96ebecc55ab10f84a2f363c8d6107e9d374cd43bc2f999f23"
                               "30000000000b9ffed5d47bc"
                               "bc1400014d800300000013d2c0d3b1c467fb020000000004595a"),
                           values()),
            0);
  // LZMA(preset=0, check=lzma.CHECK_CRC32).encode(a)
  EXPECT_EQ(expect_decodes(*codec,
                           hex("fd377a585a0000016922de36020021010c0000008f98419ce0017f00315d00006e0"
                               "049a80a002c5fa12bd34ed1"
                               "7cc9e332270f5f614e96ebecc55ab10f84a2f363c8d6107e9d374cd43bc2f999f23"
                               "30000000000596639d50001"
                               "498003000000059051483e300d8b020000000001595a"),
                           values()),
            0);
  // LZMA(preset=0, check=lzma.CHECK_SHA256).encode(a)
  EXPECT_EQ(expect_decodes(*codec,
                           hex("fd377a585a00000ae1fb0ca1020021010c0000008f98419ce0017f00315d00006e0"
                               "049a80a002c5fa12bd34ed1"
                               "7cc9e332270f5f614e96ebecc55ab10f84a2f363c8d6107e9d374cd43bc2f999f23"
                               "30000000000d68f3b71beee"
                               "e624008e81c7ff5e3ff10c40b9cb3e8782bc37c56eacc3a65cb2000165800300000"
                               "048553f38b6e9df1c020000"
                               "00000a595a"),
                           values()),
            0);
  // LZMA(preset=0, check=lzma.CHECK_NONE).encode(a)
  expect_decodes(*codec,
                 hex("fd377a585a000000ff12d941020021010c0000008f98419ce0017f00315d00006e0049a80a002"
                     "c5fa12bd34ed1"
                     "7cc9e332270f5f614e96ebecc55ab10f84a2f363c8d6107e9d374cd43bc2f999f233000000000"
                     "0000145800300"
                     "00007e50933fa8000afc020000000000595a"),
                 values());
}

TEST(Lzma, DecodesXzWithFiltersAndSeveralStreams) {
  const auto codec = make_codec("lzma");
  // LZMA(filters=delta_lzma2).encode(a)
  expect_decodes(*codec,
                 hex("fd377a585a000004e6d6b4460201030103210110a22a1215e0017f000f5d00006e0048f88885c"
                     "376daca4f854a"
                     "000000b9ffed5d47bcbc1400012b8003000000543e6d0db1c467fb020000000004595a"),
                 values());
  // lzma.compress(a[:50], preset=0) + lzma.compress(a[50:], preset=0)
  EXPECT_EQ(decode(*codec,
                   hex("fd377a585a000004e6d6b446020021010c0000008f98419ce000c7001e5d00006e0049a80a0"
                       "02c5fa12bd34ed1"
                       "7cc9e332270f5f614e96ebecbf676b68000000860c6cb4839b231f00013ac80100000069346"
                       "d07b1c467fb0200"
                       "00000004595afd377a585a000004e6d6b446020021010c0000008f98419ce000b7001f5d000"
                       "500352782c7ce56"
                       "8aa8d5b181a503056c63b2f464527be23c2a3f191442000000515474ac7bef253200013bb80"
                       "10000000307e335"
                       "b1c467fb020000000004595a"),
                   384),
            values());
}

TEST(Lzma, DecodesTheOldFormat) {
  const auto codec = make_codec("lzma", R"({"format": 2})");
  // LZMA(format=lzma.FORMAT_ALONE, preset=0).encode(a)
  expect_decodes(*codec,
                 hex("5d00000400ffffffffffffffff00006e0049a80a002c5fa12bd34ed17cc9e332270f5f614e96e"
                     "becc55ab10f84"
                     "a2f363c8d6107e9d374cd43bc2f9ba1649fffff9dd4000"),
                 values());
}

TEST(Lzma, DecodesRawDataByTheFiltersOfTheConfiguration) {
  const auto lzma2 = make_codec(
      "lzma", R"({"format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]})");
  // LZMA(format=lzma.FORMAT_RAW, filters=delta_lzma2).encode(a)
  expect_decodes(*lzma2, hex("e0017f000f5d00006e0048f88885c376daca4f854a0000"), values());
  const auto lzma1 = make_codec("lzma", R"({"format": 3, "filters":
      [{"id": 4611686018427387905, "dict_size": 4096, "lc": 2, "lp": 1, "pb": 0}]})");
  // LZMA(format=lzma.FORMAT_RAW, filters=lzma1).encode(a)
  expect_decodes(*lzma1,
                 hex("00006e90359a897a28e33ee6e40283cb60492fb40f48402957c9fa81ce5108735d3dae9771299"
                     "fb25e81529206"
                     "df72ddccfffffa0d2000"),
                 values());
}

TEST(Lzma, RefusesNothingAndTooMuch) {
  const auto codec = make_codec("lzma");
  EXPECT_TRUE(fails(*codec, {}, 8));
  // lzma.compress(bytes(100000), preset=0)
  const Bytes zeros = hex(
      "fd377a585a000004e6d6b446020021010c0000008f98419ce1869f00535d00006ffdffffa3b7ff473e48157239"
      "6151b89228e6a38607f9eee41e82d32fc53a3c014bb17ec98a8a4d2fa30dd97fa6e38c231153e05918c5758ae2"
      "77f8b6947f0c6ac0de744964e2e95c53b204d6b1f597000000008fc694a218e370f100016fa08d06000090e46e"
      "51b1c467fb020000000004595a");
  EXPECT_TRUE(fails(*codec, zeros, 99999));
  EXPECT_EQ(decode(*codec, zeros, 100000), Bytes(100000));
  // lzma.compress(b"", preset=0)
  EXPECT_EQ(
      decode(*codec, hex("fd377a585a000004e6d6b446000000001cdf44211fb6f37d010000000004595a"), 0)
          .size(),
      0u);
}

TEST(Lzma, RefusesConfigurationsThatCannotBe) {
  EXPECT_EQ(refusal("lzma", R"({"format": 3})"), "lzma: raw LZMA needs one to four filters");
  EXPECT_EQ(refusal("lzma", R"({"format": 4})"), "lzma.format: 4 is too large, the most is 3");
  EXPECT_EQ(refusal("lzma", R"({"format": "raw"})"), "lzma.format: expected a whole number");
  EXPECT_EQ(refusal("lzma", R"({"format": 3, "filters": [{"id": 4}]})"),
            "lzma.filters[0]: the LZMA filter 4 is not supported");
  EXPECT_EQ(refusal("lzma", R"({"format": 3, "filters": [{"id": 33, "preset": 77}]})"),
            "lzma.filters[0]: unknown preset");
  EXPECT_EQ(refusal("lzma", R"({"format": 3, "filters": [{"id": 3, "dist": 0}]})"),
            "lzma.filters[0].dist: 0 is too small, the least is 1");
  // lc + lp may be 4 at most, and the delta filter may not be the last.
  for (const char* filters :
       {R"([{"id": 4611686018427387905, "lc": 4, "lp": 4}])", R"([{"id": 3, "dist": 1}])",
        R"([{"id": 33, "dict_size": 1073741824}])"})
    EXPECT_EQ(refusal("lzma", fmt::format(R"({{"format": 3, "filters": {}}})", filters)),
              "lzma: these LZMA filters do not go together or need more than 1 GB of memory");
}

}  // namespace lzma_test
}  // namespace batchfs

#include "engine/codec/sharding.h"

#include "engine/base/limits.h"
#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np, zarr; from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec,
// ZstdCodec a = np.arange(24, dtype="<i4").reshape(4, 6) * 7 holes = np.where(np.arange(4)[:, None]
// < 2, a, -1) little, big = BytesCodec(endian="little"), BytesCodec(endian="big") def shard(values,
// serializer):
//   store = {}
//   zarr.create_array(store, shape=values.shape, chunks=values.shape, dtype=values.dtype,
//   fill_value=-1,
//                     serializer=serializer, filters=None, compressors=None)[...] = values
//   return store["c/0/0"].to_bytes()

namespace batchfs {
namespace sharding_test {

Bytes ramp() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 24; ++i) a.push_back(i * 7);
  return bytes_of(a);
}

ChunkLayout layout() { return {{4, 6}, make_type(Kind::signed_int, 4), hex("ffffffff")}; }

std::unique_ptr<Codec> sharding(std::string_view configuration) {
  ChunkLayout seen = layout();
  return make_codec("sharding_indexed", configuration, seen);
}

std::string sharding_refusal(std::string_view configuration) {
  return failure([&] { sharding(configuration); });
}

constexpr const char* kPlain =
    R"({"chunk_shape": [2, 3], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
  "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]})";

constexpr const char* kWithoutChecksum = R"({"chunk_shape": [2, 3], "index_location": "start",
  "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
  "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})";

TEST(Sharding, DecodesShardsOfZarrPython) {
  struct Case {
    const char* configuration;
    Bytes encoded;
  };
  const Case cases[] = {
      {kPlain,
       // shard(a, ShardingCodec(chunk_shape=(2, 3), codecs=[little]))
       hex("00000000070000000e0000002a0000003100000038000000540000005b000000620000007e00000085000"
           "0008c000000150000001c000000230000003f000000460000004d00000069000000700000007700000093"
           "0000009a000000a1000000000000000000000018000000000000003000000000000000180000000000000"
           "018000000000000001800000000000000480000000000000018000000000000004ad10a19")},
      {R"({"chunk_shape": [2, 3], "index_location": "start", "index_codecs": [{"name": "bytes",
           "configuration": {"endian": "big"}}], "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]})",
       // shard(a, ShardingCodec(chunk_shape=(2, 3), codecs=[big], index_codecs=[big],
       // index_location="start"))
       hex("0000000000000040000000000000001800000000000000700000000000000018000000000000005800000"
           "000000000180000000000000088000000000000001800000000000000070000000e0000002a0000003100"
           "000038000000540000005b000000620000007e000000850000008c000000150000001c000000230000003"
           "f000000460000004d000000690000007000000077000000930000009a000000a1")},
      {R"({"chunk_shape": [4, 2], "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
           {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}]})",
       // shard(a, ShardingCodec(chunk_shape=(4, 2), codecs=[zarr.codecs.TransposeCodec(order=(1,
       // 0)), little, ZstdCodec()]))
       hex("28b52ffd2020010100000000002a000000540000007e00000007000000310000005b0000008500000028b"
           "52ffd20200101000e00000038000000620000008c000000150000003f000000690000009300000028b52f"
           "fd20200101001c00000046000000700000009a000000230000004d00000077000000a1000000000000000"
           "0000000290000000000000029000000000000002900000000000000520000000000000029000000000000"
           "0034d10f65")},
      {R"({"chunk_shape": [2, 6], "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3],
           "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]})",
       // shard(a, ShardingCodec(chunk_shape=(2, 6), codecs=[ShardingCodec(chunk_shape=(1, 3),
       // codecs=[little, Crc32cCodec()])]))
       hex("00000000070000000e000000cdc138e32a000000310000003800000030adfdfd150000001c00000023000"
           "0000ffba8943f000000460000004d000000d232cd4a000000000000000010000000000000002000000000"
           "0000001000000000000000100000000000000010000000000000003000000000000000100000000000000"
           "0ad652c48540000005b000000620000001a74c4577e000000850000008c000000f1601dce690000007000"
           "000077000000f28316dd930000009a000000a1000000cec76190000000000000000010000000000000002"
           "0000000000000001000000000000000100000000000000010000000000000003000000000000000100000"
           "0000000000ad652c48000000000000000084000000000000008400000000000000840000000000000076d"
           "4b630")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.configuration);
    expect_decodes(*sharding(c.configuration), c.encoded, ramp());
  }
}

TEST(Sharding, MissingInnerChunksAreFillValues) {
  // zarr-python leaves chunks of nothing but fill values out: the lower two.
  // shard(holes, ShardingCodec(chunk_shape=(2, 3), codecs=[little]))
  const Bytes encoded = hex(
      "00000000070000000e0000002a0000003100000038000000150000001c000000230000003f000000460000004d"
      "0000000000000000000000180000000000000018000000000000001800000000000000ffffffffffffffffffff"
      "ffffffffffffffffffffffffffffffffffffffffffff91c557f5");
  const ShardLayout shard(JsonRef(parse_json(kPlain, "t"), ""), layout());
  const ShardIndex index(shard, std::span(encoded).last(shard.index_bytes), encoded.size());
  EXPECT_EQ(index.entry(0)->length, 24u);
  EXPECT_FALSE(index.entry(3));
  Bytes expected = ramp();
  std::fill(expected.begin() + 48, expected.end(), std::byte{0xff});
  EXPECT_EQ(decode(*sharding(kPlain), encoded, 96), expected);
}

/// A shard as kWithoutChecksum has it: the index, then data.
Bytes handmade(const std::vector<std::uint64_t>& index, std::size_t data) {
  Bytes bytes = bytes_of(index);
  for (std::size_t i = 0; i < data; ++i) bytes.push_back(static_cast<std::byte>(i));
  return bytes;
}

TEST(Sharding, InnerChunksMayLieAnywhereAndBeShared) {
  constexpr std::uint64_t kNone = UINT64_MAX;
  // The second and third chunk are the same bytes, the first lies after a gap, the last is missing.
  const Bytes encoded = handmade({64 + 30, 24, 64, 24, 64, 24, kNone, kNone}, 54);
  const Bytes decoded = decode(*sharding(kWithoutChecksum), encoded, 96);
  EXPECT_EQ(slice(decoded, 0, 12), slice(encoded, 94, 106));
  EXPECT_EQ(slice(decoded, 12, 24), slice(encoded, 64, 76));
  EXPECT_EQ(slice(decoded, 48, 60), slice(encoded, 64, 76));
  EXPECT_EQ(slice(decoded, 60, 72), Bytes(12, std::byte{0xff}));
}

TEST(Sharding, EntriesOutsideOfTheShardAreRefused) {
  constexpr std::uint64_t kNone = UINT64_MAX;
  const auto codec = sharding(kWithoutChecksum);
  const std::uint64_t end = 64 + 24;
  for (const auto& [offset, length] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{end, 24},
                                                            {64, 25},
                                                            {65, 24},
                                                            {kNone, 24},
                                                            {64, kNone},
                                                            {kNone - 23, 24},
                                                            {UINT64_C(1) << 63, 24},
                                                            {64, UINT64_C(1) << 63},
                                                            {kNone - 1, kNone},
                                                            {kNone, kNone - 1},
                                                            {end + 1, 0}}) {
    const Bytes encoded = handmade({offset, length, kNone, kNone, kNone, kNone, kNone, kNone}, 24);
    EXPECT_TRUE(fails(*codec, encoded, 96)) << offset << " " << length;
  }
  EXPECT_THAT(failure([&] {
                decode(*codec, handmade({64, 25, 0, 0, 0, 0, 0, 0}, 24), 96);
              }),
              testing::HasSubstr("the shard index points at bytes 64 to 89 of 88"));
  // Inside of the shard, but no chunk: too short, too long, empty.
  for (std::uint64_t length : {0u, 23u, 88u})
    EXPECT_TRUE(
        fails(*codec, handmade({0, length, kNone, kNone, kNone, kNone, kNone, kNone}, 24), 96))
        << length;
}

TEST(Sharding, AShardTooShortForItsIndexIsRefused) {
  const auto codec = sharding(kWithoutChecksum);
  for (std::size_t size : {0u, 1u, 63u}) EXPECT_TRUE(fails(*codec, Bytes(size), 96));
  const ShardLayout shard(JsonRef(parse_json(kWithoutChecksum, "t"), ""), layout());
  EXPECT_EQ(shard.index_bytes, 64u);
  EXPECT_EQ(failure([&] { ShardIndex(shard, Bytes(63), 63); }),
            "the shard has 63 bytes, its index alone needs 64");
}

TEST(Sharding, AChecksumShowsChangesOfTheIndex) {
  // shard(a, ShardingCodec(chunk_shape=(2, 3), codecs=[little]))
  const Bytes encoded = hex(
      "00000000070000000e0000002a0000003100000038000000540000005b000000620000007e000000850000008c"
      "000000150000001c000000230000003f000000460000004d000000690000007000000077000000930000009a00"
      "0000a1000000000000000000000018000000000000003000000000000000180000000000000018000000000000"
      "001800000000000000480000000000000018000000000000004ad10a19");
  const auto codec = sharding(kPlain);
  for (std::size_t i = 96; i < encoded.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes damaged = encoded;
      damaged[i] ^= static_cast<std::byte>(1 << bit);
      EXPECT_TRUE(fails(*codec, damaged, 96)) << i << " " << bit;
    }
}

TEST(Sharding, RefusesConfigurationsThatCannotBe) {
  EXPECT_EQ(sharding_refusal(R"({"codecs": []})"),
            "sharding_indexed: the key 'chunk_shape' is missing");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2, 3]})"),
            "sharding_indexed: the key 'codecs' is missing");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": 2, "codecs": []})"),
            "sharding_indexed.chunk_shape: expected a list");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2], "codecs": []})"),
            "sharding_indexed.chunk_shape: as many lengths as dimensions are needed");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2, 0], "codecs": []})"),
            "sharding_indexed.chunk_shape[1]: 0 is too small, the least is 1");
  EXPECT_EQ(
      sharding_refusal(R"({"chunk_shape": [3, 3], "codecs": [{"name": "bytes"}]})"),
      "sharding_indexed.chunk_shape: shards of 4 elements are not a whole number of chunks of 3");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2, 3], "codecs": {"name": "bytes"}})"),
            "sharding_indexed.codecs: expected a list");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2, 3], "codecs": [7]})"),
            "sharding_indexed.codecs[0]: expected an object");
  EXPECT_EQ(
      sharding_refusal(
          R"({"chunk_shape": [2, 3], "codecs": [{"name": "bytes"}], "index_location": "middle"})"),
      "sharding_indexed.index_location: expected \"start\" or \"end\"");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2, 3], "codecs": [{"name": "bytes"}],
                                 "index_codecs": [{"name": "bytes"}, {"name": "zstd"}]})"),
            "sharding_indexed: compressed shard indexes are not supported");
  EXPECT_EQ(sharding_refusal(R"({"chunk_shape": [2, 3], "codecs": [{"name": "other"}]})"),
            "the codec 'other' is not supported");
}

TEST(Sharding, RefusesMoreInnerChunksThanAnIndexCanHold) {
  ChunkLayout huge{{INT64_C(1) << 40}, make_type(Kind::unsigned_int, 1), Bytes(1)};
  EXPECT_EQ(failure([&] {
              make_codec("sharding_indexed",
                         R"({"chunk_shape": [1], "codecs": [{"name": "bytes"}]})", huge);
            }),
            "sharding_indexed.chunk_shape: shards of more than 67108864 chunks are not supported");
}

TEST(Sharding, DeepNestingHasAnEnd) {
  // Levels of shards with one chunk each.
  const auto nested = [](int levels) {
    std::string configuration = R"({"chunk_shape": [4, 6], "codecs": [{"name": "bytes"}]})";
    for (int i = 1; i < levels; ++i)
      configuration =
          R"({"chunk_shape": [4, 6], "codecs": [{"name": "sharding_indexed", "configuration": )" +
          configuration + "}]}";
    return sharding(configuration);
  };
  const auto codec = nested(kMaxShardLevels);
  EXPECT_TRUE(fails(*codec, Bytes(1000), 96));
  EXPECT_TRUE(fails(*codec, {}, 96));
  EXPECT_THROW(nested(kMaxShardLevels + 1), Error);
}

TEST(ParseCodecList, TakesNamesAloneAndDropsThePrefixOfNumcodecs) {
  const Json json =
      parse_json(R"(["crc32c", {"name": "numcodecs.zlib", "configuration": {"level": 3}},
                                  {"name": "zstd", "configuration": null}])",
                 "t");
  const std::vector<CodecSpec> specs = parse_codec_list(JsonRef(json, ""));
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].name, "crc32c");
  EXPECT_EQ(specs[1].name, "zlib");
  EXPECT_EQ(specs[1].configuration["level"], 3);
  EXPECT_TRUE(specs[2].configuration.empty());
}

}  // namespace sharding_test
}  // namespace batchfs

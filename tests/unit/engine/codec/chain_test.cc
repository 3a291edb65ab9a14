#include "engine/codec/chain.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// def turned(values, order, inner):  # zarr-python 3.1 cannot read these
//   little = {"name": "bytes", "configuration": {"endian": "little"}}
//   sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": inner, "codecs":
//   [little],
//               "index_codecs": [little, {"name": "crc32c"}]}}
//   metadata = {"shape": values.shape, "data_type": "int32", "chunk_grid": {"name": "regular",
//               "configuration": {"chunk_shape": values.shape}},
//               "codecs": [{"name": "transpose", "configuration": {"order": order}}, sharding]}
//   spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}
//   context = tensorstore.Context()
//   tensorstore.open(spec, create=True, context=context).result().write(values).result()
//   return tensorstore.KvStore.open("memory://", context=context).result()["c/0/0"]
// import numpy as np
// from numcodecs.checksum32 import CRC32C
// from numcodecs import Blosc, Delta, GZip, Shuffle, Zlib, Zstd
// a = np.arange(24, dtype="<i4").reshape(4, 6) * 7

namespace batchfs {
namespace chain_test {

Bytes ramp() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 24; ++i) a.push_back(i * 7);
  return bytes_of(a);
}

ChunkLayout layout() { return {{4, 6}, make_type(Kind::signed_int, 4), Bytes(4)}; }

std::vector<CodecSpec> specs(std::string_view json) {
  std::vector<CodecSpec> result;
  const Json list = parse_json(json, "test");
  for (const Json& codec : list)
    result.push_back({codec["name"], codec.value("configuration", Json::object())});
  return result;
}

CodecChain chain(std::string_view json) { return CodecChain(specs(json), layout()); }

std::string refusal(std::string_view json) {
  return failure([&] { chain(json); });
}

/// Decoding into exactly the chunk.
Bytes decode(const CodecChain& c, const Bytes& encoded) {
  Bytes out(c.decoded_size());
  c.decode(encoded, out);
  return out;
}

TEST(CodecChain, PlainBytes) {
  const CodecChain c = chain(R"([{"name": "bytes", "configuration": {"endian": "little"}}])");
  EXPECT_TRUE(c.is_plain());
  EXPECT_TRUE(c.is_identity());
  EXPECT_EQ(c.decoded_size(), 96u);
  EXPECT_EQ(c.encoded_size(), 96u);
  EXPECT_EQ(c.encoded_bound(), 96u);
  EXPECT_EQ(decode(c, ramp()), ramp());
}

TEST(CodecChain, SwappedBytesArePlainButNotTheSame) {
  const CodecChain c = chain(R"([{"name": "bytes", "configuration": {"endian": "big"}}])");
  EXPECT_TRUE(c.is_plain());
  EXPECT_FALSE(c.is_identity());
  // a.astype(">i4")
  const Bytes encoded = hex(
      "00000000000000070000000e000000150000001c000000230000002a00000031000000380000003f0000004600"
      "00004d000000540000005b000000620000006900000070000000770000007e000000850000008c000000930000"
      "009a000000a1");
  EXPECT_EQ(decode(c, encoded), ramp());
  Bytes part = slice(encoded, 8, 20);
  c.decode_plain(part);
  EXPECT_EQ(part, slice(ramp(), 8, 20));
}

TEST(CodecChain, EveryCodecInTurn) {
  struct Case {
    const char* codecs;
    Bytes encoded;
  };
  const Case cases[] = {
      {R"([{"name": "transpose", "configuration": {"order": [1, 0]}},
           {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip"}, {"name": "crc32c"}])",
       // CRC32C(location="end").encode(GZip(1).encode(a.astype(">i4").T.copy())[:4] + bytes(4) +
       // GZip(1).encode(a.astype(">i4").T.copy())[8:])
       hex("1f8b08000000000004ff1dc4911680300040d1d92c9b655996655996655936cbb26c36cbb2feb47b7ae7d"
           "c17c25fef2b1791818d42c3c84e253191b969993978e85838793f248dafb36000000089093d4e")},
      {R"([{"name": "bytes", "configuration": {"endian": "little"}},
           {"name": "delta", "configuration": {"dtype": "<i4", "astype": "<i2"}},
           {"name": "shuffle", "configuration": {"elementsize": 2}}, {"name": "zlib"}])",
       // Zlib().encode(Shuffle(2).encode(Delta("<i4", "<i2").encode(a)))
       hex("78016360c70e1870000016d400a2")},
      {R"([{"name": "delta", "configuration": {"dtype": "<i4", "astype": "<i2"}},
           {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "blosc"}, {"name": "zstd"}])",
       // Zstd().encode(Blosc().encode(Delta("<i4", "<i2").encode(a).astype(">i2")))
       hex("28b52ffd2040a500005802013302300000004000070310026504820fb8")},
      {R"([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "sharding_indexed", "configuration":
           {"chunk_shape": [3, 2], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}])",
       // turned(a, [1, 0], [3, 2])
       hex("000000002a00000007000000310000000e00000038000000540000007e0000005b0000008500000062000"
           "0008c000000150000003f0000001c00000046000000230000004d0000006900000093000000700000009a"
           "00000077000000a1000000000000000000000018000000000000001800000000000000180000000000000"
           "03000000000000000180000000000000048000000000000001800000000000000e7abd036")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.codecs);
    const CodecChain decoder = chain(c.codecs);
    EXPECT_FALSE(decoder.is_plain());
    EXPECT_FALSE(decoder.has_ranges());
    EXPECT_EQ(decoder.encoded_size(), std::nullopt);
    EXPECT_EQ(decode(decoder, c.encoded), ramp());
    for (std::size_t n = 0; n < c.encoded.size(); ++n)
      EXPECT_THROW(decode(decoder, slice(c.encoded, 0, n)), Error);
    Bytes damaged = c.encoded;
    for (std::byte& byte : damaged) {
      const std::byte good = byte;
      byte ^= std::byte{0xff};
      try {
        decode(decoder, damaged);
      } catch (const Error& error) {
        EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::corrupt, ErrorCode::not_supported));
      }
      byte = good;
    }
  }
}

TEST(CodecChain, SizesFollowThroughCodecsOfKnownSize) {
  const CodecChain c =
      chain(R"([{"name": "delta", "configuration": {"dtype": "<i4", "astype": "<i2"}},
                                {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}])");
  EXPECT_EQ(c.encoded_size(), 24u * 2 + 4);
  EXPECT_EQ(c.encoded_bound(), 24u * 2 + 4);
}

TEST(CodecChain, AChunkOfAnotherSizeIsRefused) {
  const CodecChain plain = chain(R"([{"name": "bytes", "configuration": {"endian": "little"}}])");
  EXPECT_EQ(failure([&] { decode(plain, Bytes(92)); }),
            "the chunk decodes to 92 bytes, 96 were expected");
  EXPECT_EQ(failure([&] { decode(plain, Bytes(100)); }),
            "the chunk has 100 bytes, 96 were expected");
  EXPECT_EQ(failure([&] { decode(plain, {}); }), "the chunk decodes to 0 bytes, 96 were expected");
  const CodecChain zstd =
      chain(R"([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}])");
  // Zstd().encode(a[:3])
  EXPECT_EQ(failure([&] {
              decode(zstd, hex("28b52ffd20483501008284080fb0e51c1067ee7747608cfbdd117c290f0efcddbd9"
                               "d7d5d3d1dfddcbc9c7c5c3c"
                               "7c00"));
            }),
            "the chunk decodes to 72 bytes, 96 were expected");
  // Zstd().encode(np.arange(25, dtype="<i4"))
  EXPECT_THROW(decode(zstd, hex("28b52ffd20644d01004246090910b09e0330f2248e147feebc39f3e5ca93233f6e"
                                "bc38f1e1c283037f776f675f"
                                "574f471f00")),
               Error);
}

TEST(CodecChain, KnowsWhichSizesStoredChunksHave) {
  const CodecChain plain = chain(R"([{"name": "bytes", "configuration": {"endian": "little"}}])");
  plain.check_stored_size(96);
  EXPECT_EQ(failure([&] { plain.check_stored_size(95); }),
            "the stored chunk has 95 bytes, 96 were expected");
  EXPECT_EQ(failure([&] { plain.check_stored_size(UINT64_MAX); }),
            "the stored chunk has 18446744073709551615 bytes, 96 were expected");
  const CodecChain zstd =
      chain(R"([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}])");
  zstd.check_stored_size(1);
  zstd.check_stored_size(zstd.encoded_bound());
  EXPECT_EQ(failure([&] { zstd.check_stored_size(zstd.encoded_bound() + 1); }),
            fmt::format("the stored chunk has {} bytes or more, decoded it should have 96",
                        zstd.encoded_bound() + 1));
}

TEST(CodecChain, DecodesElementsWhereTheCodecHasRanges) {
  const CodecChain c =
      chain(R"([{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "blosc"}])");
  ASSERT_TRUE(c.has_ranges());
  // Blosc("lz4").encode(a.astype(">i4"))
  const Bytes encoded = hex(
      "0201330460000000600000007000000000000000000000070000000e000000150000001c000000230000002a00"
      "000031000000380000003f000000460000004d000000540000005b000000620000006900000070000000770000"
      "007e000000850000008c000000930000009a000000a1");
  EXPECT_EQ(c.range_granularity(encoded), 96u);
  for (std::uint64_t first = 0; first < 24; ++first)
    for (std::uint64_t count = 0; first + count <= 24; ++count) {
      Bytes out(count * 4);
      c.decode_elements(encoded, first, count, out);
      EXPECT_EQ(out, slice(ramp(), first * 4, (first + count) * 4));
    }
  EXPECT_FALSE(
      chain(R"([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"},
                         {"name": "blosc"}])")
          .has_ranges());
  EXPECT_FALSE(chain(R"([{"name": "bytes"}, {"name": "blosc"}, {"name": "crc32c"}])").has_ranges());
}

TEST(CodecChain, RefusesUnknownCodecsByName) {
  EXPECT_EQ(refusal(R"([{"name": "other"}])"), "the codec 'other' is not supported");
  EXPECT_THAT(refusal(R"([{"name": "bytes"}, {"name": "pickle"}])"),
              testing::StartsWith("the codec 'pickle' is not supported: to decode it is to run"));
}

TEST(CodecChain, ChecksTheOrderOfCodecs) {
  EXPECT_EQ(refusal("[]"), "no codec makes bytes of the elements, as 'bytes' does");
  EXPECT_EQ(refusal(R"([{"name": "transpose", "configuration": {"order": [1, 0]}}])"),
            "no codec makes bytes of the elements, as 'bytes' does");
  EXPECT_EQ(refusal(R"([{"name": "zstd"}])"),
            "the codec 'zstd' needs one before it that makes bytes of the elements, as 'bytes'");
  EXPECT_EQ(
      refusal(R"([{"name": "bytes"}, {"name": "transpose", "configuration": {"order": [1, 0]}}])"),
      "the codec 'transpose' takes arrays, the codec before it gives bytes");
  EXPECT_EQ(refusal(R"([{"name": "bytes"}, {"name": "bytes"}])"),
            "the codec 'bytes' takes arrays, the codec before it gives bytes");
}

std::string compressors(int count) {
  std::string codecs = R"([{"name": "bytes", "configuration": {"endian": "little"}})";
  for (int i = 0; i < count; ++i) codecs += R"(, {"name": "zstd"})";
  return codecs + "]";
}

TEST(CodecChain, OfManyCompressorsEachAddsAnEighthAtMost) {
  const auto of_a_megabyte = [](int count) {
    return CodecChain(specs(compressors(count)),
                      {{1 << 20}, make_type(Kind::unsigned_int, 1), Bytes(1)});
  };
  EXPECT_EQ(of_a_megabyte(1).encoded_bound(), (1u << 20) + (1u << 17) + 4096);
  EXPECT_LT(of_a_megabyte(21).encoded_bound(), 13u << 20);
  EXPECT_LT(of_a_megabyte(21).scratch_bytes(), 26u << 20);
  EXPECT_EQ(refusal(compressors(32)), "33 codecs in one chain; at most 32 are supported");
}

TEST(CodecChain, KnowsTheMemoryBetweenItsCodecs) {
  EXPECT_EQ(chain(R"([{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "zstd"}])")
                .scratch_bytes(),
            0u);
  EXPECT_EQ(
      chain(
          R"([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "shuffle", "configuration": {"elementsize": 4}}, {"name": "zstd"}])")
          .scratch_bytes(),
      96u);
  const std::uint64_t encoded = 96 + 12 + 4096;
  EXPECT_EQ(chain(compressors(2)).scratch_bytes(), encoded);
  EXPECT_EQ(chain(compressors(3)).scratch_bytes(), encoded + encoded + encoded / 8 + 4096);
  EXPECT_GT(chain(R"([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "bz2"}])")
                .scratch_bytes(),
            3'000'000u);
}

TEST(CodecChain, OfNoDimensions) {
  const CodecChain c(specs(R"([{"name": "bytes", "configuration": {"endian": "little"}}])"),
                     {{}, make_type(Kind::signed_int, 4), Bytes(4)});
  EXPECT_EQ(c.decoded_size(), 4u);
  EXPECT_EQ(decode(c, hex("01000000")), hex("01000000"));
}

TEST(CodecChain, AReshapedChunkKeepsItsRanges) {
  ChunkLayout layout{{2, 3}, make_type(Kind::signed_int, 2), {}};
  const CodecChain plain({{"reshape", {{"shape", {-1}}}}, {"bytes"}}, layout);
  EXPECT_TRUE(plain.is_identity());
  const CodecChain ranged({{"reshape", {{"shape", {-1}}}}, {"bytes"}, {"blosc"}}, layout);
  EXPECT_TRUE(ranged.has_ranges());
}

TEST(CodecChain, SmallNumbersAreReadAsWhole) {
  ChunkLayout layout{{2, 2}, float32(), {}};
  layout.stored = find_small_number("bfloat16");
  const CodecChain chain({{"transpose", {{"order", {1, 0}}}}, {"bytes"}}, layout);
  EXPECT_FALSE(chain.is_plain());
  EXPECT_FALSE(chain.has_ranges());
  EXPECT_EQ(chain.encoded_size(), 8u);
  Bytes out(16);
  chain.decode(hex("803f00400000c03f"), out);
  EXPECT_EQ(out, bytes_of(std::vector<float>{1, 0, 2, 1.5}));
  for (const char* name : {"scale_offset", "ChunkyCodec", "bitround"})
    EXPECT_EQ(failure([&] {
                CodecChain({{name}, {"bytes"}}, layout);
              }),
              fmt::format("the codec '{}' on values of the type bfloat16 is not supported", name));
}

}  // namespace chain_test
}  // namespace batchfs

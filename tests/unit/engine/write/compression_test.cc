#include "engine/write/compression.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zstd.h>

#include "engine/codec/chain.h"

namespace batchfs {
namespace compression_test {

std::string why_not(const std::string& text) {
  try {
    parse_compression(text);
  } catch (const Error& error) {
    return error.why();
  }
  return "";
}

TEST(Compression, TextIsReadAndWritten) {
  EXPECT_EQ(compression_text(parse_compression("zstd")), "zstd:3");
  EXPECT_EQ(compression_text(parse_compression("zstd:-3")), "zstd:-3");
  EXPECT_EQ(compression_text(parse_compression("blosc")), "blosc:lz4:5");
  EXPECT_EQ(compression_text(parse_compression("blosc:9")), "blosc:lz4:9");
  EXPECT_EQ(compression_text(parse_compression("blosc:zstd:1")), "blosc:zstd:1");
  EXPECT_EQ(compression_text(parse_compression("gzip:9")), "gzip:9");
  EXPECT_EQ(compression_text(parse_compression("none")), "none");
}

TEST(Compression, MistakesAreNamed) {
  EXPECT_NE(why_not("zip").find("'zip' is not a codec"), std::string::npos);
  EXPECT_NE(why_not("zstd:20").find("levels -7 to 19"), std::string::npos);
  EXPECT_NE(why_not("gzip:-1").find("levels 0 to 9"), std::string::npos);
  EXPECT_NE(why_not("zstd:fast").find("'fast' is not a level"), std::string::npos);
  EXPECT_NE(why_not("zstd:99999999999999999999").find("is not a level"), std::string::npos);
  EXPECT_NE(why_not("blosc:lz4:5:1").find("'1' is too much"), std::string::npos);
  EXPECT_NE(why_not("none:1").find("too much"), std::string::npos);
  EXPECT_NE(why_not("").find("is not a codec"), std::string::npos);
}

TEST(Compression, EveryMethodDecodesToTheSameBytes) {
  std::vector<float> values(10000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) * 0.5f;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  for (const char* text : {"none", "zstd:1", "zstd:-7", "blosc:lz4hc:9", "blosc:zstd:3",
                           "blosc:zlib:1", "blosc:blosclz:0", "gzip:0", "gzip:9"}) {
    SCOPED_TRACE(text);
    const Compression how = parse_compression(text);
    const Buffer encoded = compress(how, 4, bytes);
    EXPECT_LE(encoded.size(), compressed_bound(how, bytes.size()));
    std::vector<CodecSpec> specs{{"bytes", {{"endian", "little"}}}};
    if (const Json codec = v3_codec(how, 4); !codec.is_null())
      specs.push_back({codec["name"], codec["configuration"]});
    const CodecChain chain(specs, {{10000}, float32(), std::vector<std::byte>(4)});
    Buffer decoded(bytes.size());
    chain.decode(encoded.span(), decoded.span());
    EXPECT_EQ(std::memcmp(decoded.data(), bytes.data(), bytes.size()), 0);
    const Buffer again = compress(how, 4, bytes);
    ASSERT_EQ(again.size(), encoded.size());
    EXPECT_EQ(std::memcmp(again.data(), encoded.data(), again.size()), 0);
  }
}

TEST(Compression, NothingCompressesToo) {
  for (const char* text : {"none", "zstd", "gzip"})
    EXPECT_NO_THROW(compress(parse_compression(text), 4, {})) << text;
}

TEST(Compression, ContextsOfZstandardTakeNoMoreThanIsSaid) {
  for (int level = -7; level <= 19; ++level)
    for (const std::size_t size : {4096, 65536, 131072, 200000, 1 << 20, 4 << 20, 20 << 20}) {
      const std::vector<std::byte> in(size);
      std::vector<std::byte> out(ZSTD_compressBound(size));
      ZSTD_CCtx* const context = ZSTD_createCCtx();
      ZSTD_compressCCtx(context, out.data(), out.size(), in.data(), size, level);
      const std::uint64_t takes = ZSTD_sizeof_CCtx(context);
      ZSTD_freeCCtx(context);
      const std::uint64_t said = encoder_memory({Compression::Method::zstd, level, {}}, size);
      EXPECT_GE(said, takes) << level << " " << size;
      EXPECT_LE(said, 4 * takes + (1 << 20)) << level << " " << size;
    }
}

TEST(Compression, EncodersTakeNoMoreForMoreBytesThanTheirLargest) {
  for (const char* text : {"zstd", "blosc:lz4:5", "blosc:zstd:9", "gzip:9", "none"}) {
    const Compression how = parse_compression(text);
    EXPECT_LE(encoder_memory(how, 1000), encoder_memory(how, 100 << 20)) << text;
    EXPECT_EQ(encoder_memory(how, 100 << 20), encoder_memory(how, 1000 << 20)) << text;
  }
}

}  // namespace compression_test
}  // namespace batchfs

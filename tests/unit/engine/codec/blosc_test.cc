#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/damage.h"

// The vectors, in Python:
// import numpy as np; from numcodecs import Blosc
// a = (np.arange(96) // 5).astype("<i4")
// b = (np.arange(40000) // 4000).astype("<u2")

namespace batchfs {
namespace blosc_test {

Bytes small() {
  std::vector<std::int32_t> a;
  for (int i = 0; i < 96; ++i) a.push_back(i / 5);
  return bytes_of(a);
}

Bytes blocks() {
  std::vector<std::uint16_t> b;
  for (int i = 0; i < 40000; ++i) b.push_back(static_cast<std::uint16_t>(i / 4000));
  return bytes_of(b);
}

struct Vector {
  const char* name;
  Bytes encoded;
  std::size_t block = 384;
};

/// Every inner codec with every shuffle, and what stands stored.
std::vector<Vector> vectors() {
  return {
      {"Blosc('blosclz', 5, 0).encode(a)", hex("020110048001000080010000910000001400000079000000230"
                                               "0000000e00703010100e00903010200e00903"
                                               "010300e00903010400e00903010500e00903010600e00903010"
                                               "700e00903010800e00903010900e00903010a"
                                               "00e00903010b00e00903010c00e00903010d00e00903010e00e"
                                               "00903010f00e00903011000e00903011100e0"
                                               "0903011200e009030313000000")},
      {"Blosc('blosclz', 5, 1).encode(a)", hex("02011104800100008001000084000000140000006c0000003f0"
                                               "0000000000101010101020202020203030303"
                                               "030404040404050505050506061f06060607070707070808080"
                                               "80809090909090a0a0a0a0a0b0b0b0b0b0c0c"
                                               "0c0c1f0c0d0d0d0d0d0e0e0e0e0e0f0f0f0f0f1010101010111"
                                               "1111111121212121213605fe0ff1101010000")},
      {"Blosc('blosclz', 5, 2).encode(a)",
       hex("02011404800100008001000046000000140000002e00000024e0830f3ef8a0040400fc0fc0ffa004040000f"
           "0"
           "ffffa004600104ffffffffff6009a001e0050de0ff2e01010000")},
      {"Blosc('lz4', 5, 0).encode(a)",
       hex("0201300480010000800100007c00000014000000640000001f000100001f010400001f020400001f0304000"
           "0"
           "1f040400001f050400001f060400001f070400001f080400001f090400001f0a0400001f0b0400001f0c040"
           "0"
           "001f0d0400001f0e0400001f0f0400001f100400001f110400001e120400500013000000")},
      {"Blosc('lz4', 5, 1).encode(a)",
       hex("02013104800100008001000073000000140000005b000000100001001001010010020100100301001004010"
           "0"
           "1005010010060100100701001008010010090100100a0100100b0100100c0100100d0100100e0100100f010"
           "0"
           "10100100101101001012010010135f000f0200ff05500000000000")},
      {"Blosc('lz4', 5, 2).encode(a)",
       hex("0201340480010000800100004b000000140000003300000053e0830f3ef805005300fc0fc0ff0500530000f"
           "0"
           "ffff050001020010ff0100010a000302000a0e000f0200ff21500000000000")},
      {"Blosc('lz4hc', 5, 0).encode(a)",
       hex("0201300480010000800100007c00000014000000640000001f000100001f010400001f020400001f0304000"
           "0"
           "1f040400001f050400001f060400001f070400001f080400001f090400001f0a0400001f0b0400001f0c040"
           "0"
           "001f0d0400001f0e0400001f0f0400001f100400001f110400001e120400500013000000")},
      {"Blosc('lz4hc', 5, 1).encode(a)", hex("02013104800100008001000071000000140000005900000010000"
                                             "10010010100100201001003010010040100"
                                             "1005010010060100100701001008010010090100100a0100100b0"
                                             "100100c0100100d0100100e0100100f0100"
                                             "1010010010110100101201002f13000100ff08500000000000")},
      {"Blosc('lz4hc', 5, 2).encode(a)",
       hex("02013404800100008001000049000000140000003100000053e0830f3ef805005300fc0fc0ff0500530000f"
           "0"
           "ffff050001010010ff0100170001000a0e000f0100ff21500000000000")},
      {"Blosc('zlib', 5, 0).encode(a)",
       hex("0201700480010000800100004c0000001400000034000000785e6dc3411240200000c0104522f9ff5f75b73"
           "b"
           "b321fc4d38e3821157dc3061c61d0f2c7862c50b6f6cf860c777fc00b1cf036b")},
      {"Blosc('zlib', 5, 1).encode(a)",
       hex("0201710480010000800100004a0000001400000032000000785eedc1090180201000b0c30f155fe8df5557c"
           "0"
           "046e11af4447cfc0c844666661a5b0b1737072715369f1fbf400450c036b")},
      {"Blosc('zlib', 5, 2).encode(a)", hex("02017404800100008001000042000000140000002a000000785e7b"
                                            "d0cc6ff7e3018460f8c37fe03f946060f8"
                                            "f0ff3f940083ff20c080045079a3803c0000939f1a19")},
      {"Blosc('zstd', 5, 0).encode(a)",
       hex("0201900480010000800100004b000000140000003300000028b52ffd6080004d0100c000000102030405060"
           "7"
           "08090a0b0c0d0e0f1011121300000013a810f806f0c510fe1d1fded12f4b01")},
      {"Blosc('zstd', 5, 1).encode(a)",
       hex("0201910480010000800100004e000000140000003600000028b52ffd608000650100c800000000000102030"
           "4"
           "05060708090a0b0c0d0e0f1011121300139810e8cb010010f8faffffdf011ca7450a")},
      {"Blosc('zstd', 5, 2).encode(a)",
       hex("02019404800100008001000047000000140000002f00000028b52ffd6080002d010088e0830f3ef800fc0fc"
           "0"
           "ff0000f0ffffff00082070931d35a81024c4652cecaccf1a99d602")},
      {"Blosc('lz4', 0).encode(a)", hex("0201330480010000800100009001000000000000000000000000000000"
                                        "000000000000000100000001000000"
                                        "0100000001000000010000000200000002000000020000000200000002"
                                        "000000030000000300000003000000"
                                        "0300000003000000040000000400000004000000040000000400000005"
                                        "000000050000000500000005000000"
                                        "0500000006000000060000000600000006000000060000000700000007"
                                        "000000070000000700000007000000"
                                        "0800000008000000080000000800000008000000090000000900000009"
                                        "00000009000000090000000a000000"
                                        "0a0000000a0000000a0000000a0000000b0000000b0000000b0000000b"
                                        "0000000b0000000c0000000c000000"
                                        "0c0000000c0000000c0000000d0000000d0000000d0000000d0000000d"
                                        "0000000e0000000e0000000e000000"
                                        "0e0000000e0000000f0000000f0000000f0000000f0000000f00000010"
                                        "000000100000001000000010000000"
                                        "1000000011000000110000001100000011000000110000001200000012"
                                        "000000120000001200000012000000"
                                        "13000000")},
      {"Blosc('zstd', 9, 1).encode(a.view('u1'))",
       hex("02019101800100008001000042000000140000002a00000028b52ffd608000050100b800010203040506070"
           "8"
           "090a0b0c0d0e0f10111213000000136401f00d10170b")},
  };
}

/// `b` in several blocks, the last of them short.
std::vector<Vector> in_blocks() {
  return {
      {"Blosc('blosclz', 9, 0, 256).encode(b)",
       hex("020100028038010000000100b20100001800000064010000a20000002300000000e0fffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffff5103010001e0fffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffff5401010002e0fffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffff5401010003e0fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "5401010004e0fffff50102000400a20000002304000400e0fffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffff4e03010005e0fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ff5401010006e0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff5401010007e"
           "0"
           "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff5401010008e0fffffffffff80"
           "1"
           "020008004a0000002308000800e0ffffffffffffffffffffffffffffffffffffffffffffffffff4b0301000"
           "9"
           "e0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff520102000900"),
       65536},
      {"Blosc('lz4', 9, 0, 256).encode(b)",
       hex("020120028038010000000100a8010000180000005b0100009d0000001f000100fffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffff4b1f010200fffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffff4b1f020200fffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffff4b1f030200ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff4b1f04020"
           "0"
           "ffffe95000040004009e0000002f04000200fffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffff471f050200ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff4b1f060200f"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff4b1f070200fffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffffff4b1f080200ffffffffffec500008000800490000002"
           "f"
           "08000200ffffffffffffffffffffffffffffffffffffffffffffffffff441f090200fffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffff46500009000900"),
       65536},
      {"Blosc('lz4', 9, 2, 256).encode(b)",
       hex("020124028038010000000100d80100001800000079010000ce0000001f000100ffe11fff0100ffe10fe703f"
           "f"
           "e11f00e703ffe10fe803ffffffffffffffffffbb0f0200ffff430f0c0effe20f0200ffe20f3c06ffff430f0"
           "2"
           "00ff820fdc05ffe20f0200ffe20f7c05ff820f0200ffffffffffff8f0f240affe20f0200ffffffffffce0f6"
           "c"
           "0effffffffffff8f0f0200ffffffffffffffffff5a0fdc154d0fc409ffffffffffffffffff5a0f0200fffff"
           "f"
           "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffba5000000000008b0000001f000100fffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffff675000000000005b0000001f000100ff811fff0100ffe10f870"
           "3"
           "ff810f0200ffffffffff6f0f0309ffe10f0200ff830f0509ffffffffff6f0f0200fffffffffffffffffffff"
           "f"
           "ffffffffffffffffffffffffffffffffffffffffffffffffffef500000000000"),
       65536},
      {"Blosc('zlib', 9, 1, 256).encode(b)",
       hex("020161028038010000000100c9000000180000009a0000004600000078daedc1490100201004a0f5b67f626"
           "3"
           "cc43a00a000000486b000000405c07000000e206000000103701000080b805000000c46d00000020ee00000"
           "0"
           "0071173ef600f765cd903400000078daedc101010000008090feafee080a000000000000000000000000000"
           "0"
           "000000000000000000000000000000000018800000012b00000078daedc1a1010000080320e3fcff618b3f6"
           "8"
           "00120000801f1a0000003857000000000000006b003da1f1a1"),
       65536},
      {"Blosc('zstd', 9, 1, 16384).encode(b)",
       hex("020191028038010000400000c8000000240000004b0000006b000000a80000008b0000002300000028b52ff"
           "d"
           "60003fcd0000180001020580903e5d007a3a3f00aacf0314e7819ff33e40011c00000028b52ffd60003f950"
           "0"
           "00200203040004500100fcdff3a99cf7b9ed071c00000028b52ffd60003f950000200405060004500100fcd"
           "f"
           "f3a838ef73d80f1900000028b52ffd6080377d000018080900035001003cdc73dee7a41f1c00000028b52ff"
           "d"
           "60003f950000200607080004500100fcdff3ab38ef73d50f"),
       16384},
      {"Blosc('zstd', 9, 2, 16384).encode(b)",
       hex("020194028038010000400000fa00000024000000740000004a000000ca000000a00000002200000028b52ff"
           "d"
           "60003fc500001800ff000580903efd13f054b041fef9830a1ea8e15580022600000028b52ffd60003fe5000"
           "0"
           "2000ff00ff06a0703eb0f373fd0f9efe4ba888f0e75fc1abc02aad012800000028b52ffd60003ff50000280"
           "0"
           "ff00ff0007a0603ec0f31efd0f9e1666f8f35731af88e0d5d86a17012600000028b52ffd608037e50000200"
           "0"
           "ff00ff06a0703eb0f3734d039e806cca87a466f8875721555a032c00000028b52ffd60003f1501001800fff"
           "f"
           "0880401ffd0bf0068c91ff074c9ddd4a9403e47f822ba2020fd450553002"),
       16384},
  };
}

TEST(Blosc, DecodesWhatNumcodecsWrites) {
  const auto codec =
      make_codec("blosc", R"({"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0})");
  for (const Vector& vector : vectors()) {
    SCOPED_TRACE(vector.name);
    expect_decodes(*codec, vector.encoded, small());
  }
}

TEST(Blosc, TheHeaderBeatsTheMetadata) {
  // zarr-java writes shuffle -1, others a typesize that is not the frame's.
  const auto codec =
      make_codec("blosc", R"({"cname": "zlib", "shuffle": -1, "typesize": 16, "blocksize": 7})");
  for (const Vector& vector : vectors())
    EXPECT_EQ(decode(*codec, vector.encoded, 384), small()) << vector.name;
}

TEST(Blosc, DecodesBlocks) {
  const auto codec = make_codec("blosc");
  for (const Vector& vector : in_blocks()) {
    SCOPED_TRACE(vector.name);
    EXPECT_EQ(codec->range_granularity(vector.encoded), vector.block);
    expect_decodes(*codec, vector.encoded, blocks());
  }
}

TEST(Blosc, DecodesAnyRangeAlone) {
  const auto codec = make_codec("blosc");
  ASSERT_TRUE(codec->has_ranges());
  std::vector<Vector> all = in_blocks();
  for (const Vector& vector : all) {
    SCOPED_TRACE(vector.name);
    const Bytes whole = blocks();
    // Inside of a block, across its border, odd offsets that cut elements, the short last block,
    // nothing, all.
    for (const auto& [offset, length] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 2},
                                                          {vector.block - 2, 4},
                                                          {vector.block - 1, 3},
                                                          {1, 1},
                                                          {79990, 10},
                                                          {79999, 1},
                                                          {100, 0},
                                                          {80000, 0},
                                                          {0, 80000},
                                                          {3, 79994}}) {
      EXPECT_EQ(decode_range(*codec, vector.encoded, whole.size(), offset, length),
                slice(whole, offset, offset + length))
          << offset << " " << length;
    }
  }
}

TEST(Blosc, RangesOfDamagedFramesEndInErrorsOrBytes) {
  const auto codec = make_codec("blosc");
  for (const Vector& vector : in_blocks()) {
    SCOPED_TRACE(vector.name);
    auto survive = [&](const Bytes& damaged) {
      for (const auto& [offset, length] :
           {std::pair{0u, 16u}, std::pair{65530u, 20u}, std::pair{79995u, 5u}}) {
        try {
          decode_range(*codec, damaged, 80000, offset, length);
        } catch (const Error& error) {
          EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::corrupt, ErrorCode::not_supported));
        }
      }
    };
    for (std::size_t n = 0; n < vector.encoded.size(); ++n) survive(slice(vector.encoded, 0, n));
    Bytes damaged = vector.encoded;
    for (std::byte& byte : damaged) {
      const std::byte good = byte;
      for (int mask : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
        byte = good ^ static_cast<std::byte>(mask);
        survive(damaged);
      }
      byte = good;
    }
  }
}

/// The frame with only what stored_spans() asks for filled in; the rest is 0xee.
std::optional<Bytes> filled(const Codec& codec, const Bytes& encoded, std::size_t stored_size,
                            std::uint64_t offset, std::uint64_t length) {
  Bytes sparse(stored_size, std::byte{0xee});
  std::uint64_t head = 0, more = 0;
  std::optional<std::vector<Codec::Span>> spans;
  for (int round = 0; round < 3 && !spans; ++round) {
    spans = codec.stored_spans(std::span(sparse).first(head), stored_size, offset, length, &more);
    if (!spans && (more <= head || more > encoded.size())) return std::nullopt;
    if (!spans) std::copy_n(encoded.begin(), head = more, sparse.begin());
  }
  for (const Codec::Span& span : spans.value()) {
    EXPECT_LE(span.offset + span.length, stored_size);
    std::copy_n(encoded.begin() + static_cast<std::ptrdiff_t>(span.offset), span.length,
                sparse.begin() + static_cast<std::ptrdiff_t>(span.offset));
  }
  return sparse;
}

TEST(Blosc, StoredSpansAreAllThatARangeNeeds) {
  const auto codec = make_codec("blosc");
  const Bytes whole = blocks();
  for (const Vector& vector : in_blocks()) {
    SCOPED_TRACE(vector.name);
    for (const auto& [offset, length] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 2},
                                                          {vector.block - 2, 4},
                                                          {vector.block - 1, 3},
                                                          {40001, 7},
                                                          {79990, 10},
                                                          {79999, 1},
                                                          {0, 80000}}) {
      const auto sparse = filled(*codec, vector.encoded, vector.encoded.size(), offset, length);
      ASSERT_TRUE(sparse) << offset;
      EXPECT_EQ(decode_range(*codec, *sparse, whole.size(), offset, length),
                slice(whole, offset, offset + length))
          << offset;
    }
  }
}

TEST(Blosc, ItemsNeedNotDivideTheFrame) {
  const auto codec = make_codec("blosc");
  const Bytes whole = small();  // 384 bytes
  for (const Vector& vector : vectors()) {
    if (std::string_view(vector.name) != "Blosc('lz4', 5, 0).encode(a)") continue;
    Bytes frame = vector.encoded;
    frame[3] =
        std::byte{5};  // of items that are not shuffled, the size is of no matter to their bytes
    ASSERT_EQ(decode(*codec, frame, whole.size()), whole);
    for (const auto& [offset, length] : std::vector<std::pair<std::size_t, std::size_t>>{
             {380, 4}, {383, 1}, {0, 384}, {7, 377}, {5, 10}}) {
      EXPECT_EQ(decode_range(*codec, frame, whole.size(), offset, length),
                slice(whole, offset, offset + length))
          << offset;
      if (const auto sparse = filled(*codec, frame, frame.size(), offset, length)) {
        EXPECT_EQ(decode_range(*codec, *sparse, whole.size(), offset, length),
                  slice(whole, offset, offset + length))
            << offset;
      }
    }
    EXPECT_FALSE(filled(*codec, frame, frame.size(), 380, 4));  // it takes the whole
    EXPECT_TRUE(filled(*codec, frame, frame.size(), 5, 10));
  }
}

TEST(Blosc, StoredSpansOfDamagedFramesStayInside) {
  const auto codec = make_codec("blosc");
  for (const Vector& vector : in_blocks()) {
    SCOPED_TRACE(vector.name);
    Bytes damaged = vector.encoded;
    for (std::size_t i = 0; i < std::min<std::size_t>(damaged.size(), 60); ++i) {
      for (int mask = 1; mask < 256; ++mask) {
        damaged[i] = vector.encoded[i] ^ static_cast<std::byte>(mask);
        for (std::uint64_t offset : {0u, 65530u, 79995u})
          filled(*codec, damaged, damaged.size(), offset, 5);
      }
      damaged[i] = vector.encoded[i];
    }
  }
}

TEST(Blosc, StoredSpansOfSizesThatMakeNoSenseAreNotKnown) {
  const auto codec = make_codec("blosc");
  // The header's sizes are signed: a negative one is huge, and some sums of two are small again.
  for (const auto& [field, claim] : std::vector<std::pair<std::size_t, std::uint32_t>>{
           {4, 0xffffffff}, {8, 0xffffff00}, {8, 0x7fffffff}}) {
    Bytes encoded = vectors()[0].encoded;
    std::memcpy(encoded.data() + field, &claim, 4);
    EXPECT_FALSE(filled(*codec, encoded, encoded.size(), 0, 8)) << field << " " << claim;
  }
}

TEST(Blosc, ABlockThatReachesIntoTheNextIsRefused) {
  // A part of it would be read without its end.
  const auto codec = make_codec("blosc");
  Bytes damaged = in_blocks()[1].encoded;
  damaged[20] ^= std::byte{0x5b ^ 0x56};  // where the second block begins
  constexpr std::size_t kOffset = 65524, kLength = 8;
  const auto sparse = filled(*codec, damaged, damaged.size(), kOffset, kLength);
  ASSERT_TRUE(sparse);
  for (const Bytes& frame : {damaged, *sparse})
    EXPECT_EQ(failure([&] { decode_range(*codec, frame, 80000, kOffset, kLength); }),
              "the Blosc frame (LZ4) does not decode");
}

TEST(Blosc, BlocksMayBeTheSameButNotOverlap) {
  const auto codec = make_codec("blosc");
  // Blocks of 16 bytes as they are, behind their length; the second begins at `second`.
  const auto frame = [](std::uint8_t second, std::string_view stored) {
    Bytes encoded = hex("0201300120000000100000000000000018000000");
    encoded.resize(24);
    encoded[20] = static_cast<std::byte>(second);
    const Bytes rest = hex(stored);
    encoded.insert(encoded.end(), rest.begin(), rest.end());
    encoded[12] = static_cast<std::byte>(encoded.size());
    return encoded;
  };
  const Bytes same = frame(24,
                           "10000000"
                           "000102030405060708090a0b0c0d0e0f");
  const Bytes block = slice(same, 28, 44);
  Bytes twice = block;
  twice.insert(twice.end(), block.begin(), block.end());
  EXPECT_EQ(decode(*codec, same, 32), twice);
  EXPECT_EQ(decode_range(*codec, same, 32, 14, 4), slice(twice, 14, 18));

  const Bytes within = frame(32,
                             "10000000"
                             "00010203"
                             "10000000"
                             "0405060708090a0b"
                             "0c0d0e0f10111213");
  EXPECT_EQ(failure([&] { decode(*codec, within, 32); }), "the Blosc frame (LZ4) does not decode");
  EXPECT_EQ(failure([&] { decode_range(*codec, within, 32, 0, 4); }),
            "the Blosc frame (LZ4) does not decode");
  EXPECT_EQ(decode_range(*codec, within, 32, 16, 4),
            hex("04050607"));  // which ends where the frame does
}

TEST(Blosc, ARangeOfAFrameOfAnotherSizeIsRefused) {
  const auto codec = make_codec("blosc");
  EXPECT_EQ(failure([&] { decode_range(*codec, in_blocks()[0].encoded, 79999, 0, 8); }),
            "the Blosc frame holds 80000 bytes, 79999 were expected");
}

TEST(Blosc, SaysWhatIsWrong) {
  const auto codec = make_codec("blosc");
  const Bytes good = vectors()[0].encoded;
  EXPECT_EQ(failure([&] { decode(*codec, {}, 8); }), "the Blosc frame is truncated");
  EXPECT_EQ(failure([&] { decode(*codec, std::span(good).first(15), 384); }),
            "the Blosc frame is truncated");
  EXPECT_EQ(failure([&] { decode(*codec, std::span(good).first(30), 384); }),
            fmt::format("the Blosc frame says it has {} bytes, it has 30", good.size()));
  EXPECT_EQ(failure([&] { decode(*codec, good, 383); }),
            "the Blosc frame holds 384 bytes, 383 were expected");
  Bytes unknown = good;
  unknown[2] = (unknown[2] & std::byte{0x1f}) | std::byte{7 << 5};
  EXPECT_EQ(failure([&] { decode(*codec, unknown, 384); }),
            "the Blosc frame's inner codec is not supported");
}

TEST(Blosc, ClaimsOfHugeFramesCostNothing) {
  const auto codec = make_codec("blosc");
  // The header's sizes are at bytes 4 (decoded), 8 (block), 12 (frame).
  for (std::size_t field : {4u, 8u, 12u})
    for (std::uint32_t claim : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0x7fffffe0u}) {
      Bytes encoded = vectors()[0].encoded;
      std::memcpy(encoded.data() + field, &claim, 4);
      fails(*codec, encoded, 384);
    }
  // Block offsets follow the header.
  for (std::size_t block = 0; block < 2; ++block)
    for (std::uint32_t claim : {0u, 15u, 16u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0xfffffff0u}) {
      Bytes encoded = in_blocks()[0].encoded;
      std::memcpy(encoded.data() + 16 + 4 * block, &claim, 4);
      fails(*codec, encoded, 80000);
      try {
        decode_range(*codec, encoded, 80000, block * 40000, 16);
      } catch (const Error&) {
      }
    }
}

TEST(Blosc, AnEmptyFrameIsNothing) {
  const auto codec = make_codec("blosc");
  // Blosc().encode(b"")
  EXPECT_EQ(decode(*codec, hex("02013301000000000100000010000000"), 8).size(), 0u);
}

}  // namespace blosc_test
}  // namespace batchfs

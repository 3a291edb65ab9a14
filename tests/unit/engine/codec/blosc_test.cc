#include "engine/codec/codecs.h"

#include "tests/unit/engine/codec/blosc_vectors.h"
#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace blosc_test {

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

/// The frame with only the pieces of stored_spans() filled in; the rest is 0xee.
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
  damaged[20] ^= std::byte{0x5b ^ 0x56};  // the start of the second block
  constexpr std::size_t kOffset = 65524, kLength = 8;
  const auto sparse = filled(*codec, damaged, damaged.size(), kOffset, kLength);
  ASSERT_TRUE(sparse);
  for (const Bytes& frame : {damaged, *sparse})
    EXPECT_EQ(failure([&] { decode_range(*codec, frame, 80000, kOffset, kLength); }),
              "the Blosc frame (LZ4) does not decode");
}

TEST(Blosc, BlocksMayBeTheSameButNotOverlap) {
  const auto codec = make_codec("blosc");
  // Blocks of 16 bytes, stored uncompressed after their length; the second begins at `second`.
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
            hex("04050607"));  // it ends at the end of the frame
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

#include "engine/array/chunk_part.h"

#include <numeric>

#include <zlib.h>

#include "tests/unit/engine/codec/damage.h"

namespace batchfs {
namespace chunk_part_test {

using testing::ElementsAre;

/// A chunk of 3 by 4 with the elements 0, 1, ... 11, stored with `codecs`.
struct Chunk {
  explicit Chunk(const std::vector<CodecSpec>& codecs)
      : chain(codecs, ChunkLayout{shape, make_type(Kind::signed_int, 4), Bytes(4)}) {}

  ChunkForm form() const { return {chain, shape, 4}; }
  /// A part of it, C order.
  std::vector<std::int32_t> part(const EncodedChunk& encoded, const Box& part,
                                 std::uint64_t* decoded = nullptr) const {
    std::vector<std::int32_t> out(static_cast<std::size_t>(part.elements()), 77);
    const std::uint64_t bytes = decode_part(
        form(), encoded, part, reinterpret_cast<std::byte*>(out.data()), c_strides(part.shape, 4));
    if (decoded != nullptr) *decoded = bytes;
    return out;
  }

  const Dims shape{3, 4};
  CodecChain chain;
};

EncodedChunk encoded(const Bytes& bytes, std::uint64_t offset = 0) {
  EncodedChunk chunk;
  chunk.missing = false;
  chunk.offset = offset;
  chunk.bytes = Buffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), chunk.bytes.data());
  return chunk;
}

Bytes elements(bool big = false) {
  std::vector<std::uint32_t> values(12);
  std::iota(values.begin(), values.end(), 0);
  if (big)
    for (std::uint32_t& value : values) value = __builtin_bswap32(value);
  return bytes_of(values);
}

Bytes zlib(const Bytes& bytes) {
  Bytes out(compressBound(bytes.size()));
  uLongf size = out.size();
  EXPECT_EQ(::compress(reinterpret_cast<Bytef*>(out.data()), &size,
                       reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  out.resize(size);
  return out;
}

const std::vector<CodecSpec> kLittle{{"bytes", {{"endian", "little"}}}},
    kBig{{"bytes", {{"endian", "big"}}}},
    kZlib{{"bytes", {{"endian", "little"}}}, {"zlib", {{"level", 1}}}};

TEST(ChunkPart, ARunGoesFromTheFirstElementToTheLast) {
  const ElementRun row = run_of({3, 4}, {{1, 0}, {1, 4}}),
                   column = run_of({3, 4}, {{0, 2}, {3, 1}});
  EXPECT_EQ(row.first, 4u);
  EXPECT_EQ(row.count, 4u);
  EXPECT_EQ(column.first, 2u);
  EXPECT_EQ(column.count, 9u);
  EXPECT_EQ(run_of({}, {{}, {}}).count, 1u);
}

TEST(ChunkPart, ContiguousAreTheStridesOfCOrder) {
  EXPECT_TRUE(is_contiguous({3, 4}, {16, 4}, 4));
  EXPECT_FALSE(is_contiguous({3, 4}, {32, 4}, 4));
  EXPECT_FALSE(is_contiguous({3, 4}, {4, 12}, 4));
  EXPECT_TRUE(is_contiguous({1, 4, 1}, {999, 4, -7}, 4));
}

TEST(ChunkPart, OfAPlainChunkNeedsOnlyItsOwnBytes) {
  for (bool big : {false, true}) {
    const Chunk chunk(big ? kBig : kLittle);
    const Bytes all = elements(big);
    std::uint64_t decoded = 0;
    EXPECT_THAT(chunk.part(encoded(all), {{1, 1}, {2, 2}}, &decoded), ElementsAre(5, 6, 9, 10));
    EXPECT_EQ(decoded, 6 * 4u);  // 5 to 10
    // Fetched from element 5 on.
    EXPECT_THAT(chunk.part(encoded(slice(all, 20, 44), 20), {{1, 1}, {2, 2}}),
                ElementsAre(5, 6, 9, 10));
    EXPECT_TRUE(decodes_directly(chunk.form(), {{1, 0}, {2, 4}}, {16, 4}));
    EXPECT_FALSE(decodes_directly(chunk.form(), {{1, 1}, {2, 2}}, {8, 4}));
  }
}

TEST(ChunkPart, OfAPlainChunkThatLacksIt) {
  const Chunk chunk(kLittle);
  const Bytes all = elements();
  const auto failed = [&](const EncodedChunk& fetched) {
    return failure([&] { chunk.part(fetched, {{1, 1}, {2, 2}}); });
  };
  EXPECT_EQ(failed(encoded(slice(all, 0, 43))), "the stored chunk has 43 bytes, 48 were expected");
  EXPECT_NE(failed(encoded(slice(all, 24, 48), 24)), "no error");  // begins after it
  Bytes longer = all;
  longer.resize(49);
  EXPECT_EQ(failed(encoded(longer)), "the stored chunk has 49 bytes, 48 were expected");
}

TEST(ChunkPart, OfACompressedChunk) {
  const Chunk chunk(kZlib);
  const EncodedChunk all = encoded(zlib(elements()));
  std::uint64_t decoded = 0;
  EXPECT_THAT(chunk.part(all, {{0, 0}, {3, 4}}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(chunk.part(all, {{0, 2}, {3, 1}}, &decoded), ElementsAre(2, 6, 10));
  EXPECT_EQ(decoded, 48u);  // all of it
  EXPECT_TRUE(decodes_directly(chunk.form(), {{0, 0}, {3, 4}}, {16, 4}));
  EXPECT_FALSE(decodes_directly(chunk.form(), {{0, 0}, {3, 4}}, {4, 12}));
  EXPECT_FALSE(decodes_directly(chunk.form(), {{0, 0}, {1, 4}}, {16, 4}));
}

TEST(ChunkPart, GoesToItsStridesAndNowhereElse) {
  for (const auto& codecs : {kLittle, kZlib}) {
    const Chunk chunk(codecs);
    std::vector<std::int32_t> out(12, 77);
    // Transposed, two elements apart.
    decode_part(chunk.form(), encoded(codecs.size() == 1 ? elements() : zlib(elements())),
                {{0, 1}, {2, 2}}, reinterpret_cast<std::byte*>(out.data()), {8, 24});
    EXPECT_THAT(out, ElementsAre(1, 77, 5, 77, 77, 77, 2, 77, 6, 77, 77, 77));
  }
}

}  // namespace chunk_part_test
}  // namespace batchfs

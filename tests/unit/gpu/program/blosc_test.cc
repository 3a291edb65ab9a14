#include <random>

#include <blosc.h>
#include <gtest/gtest.h>

#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace blosc_test {

using Bytes = std::vector<std::uint8_t>;

Bytes compressed(const Bytes& data, const char* codec, int level, int shuffle, std::size_t item,
                 std::size_t block) {
  Bytes chunk(data.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(level, shuffle, item, data.size(), data.data(), chunk.data(),
                                      chunk.size(), codec, block, 1);
  EXPECT_GT(size, 0);
  chunk.resize(static_cast<std::size_t>(size));
  return chunk;
}

/// Decodes `chunk`, which lies somewhere in the middle of a batch; empty when the GPU code refuses
/// it.
Bytes on_gpu_code(const Bytes& chunk, std::size_t size, Verdict* verdict = nullptr) {
  Bytes source(3 + chunk.size(), 0xee);
  std::copy(chunk.begin(), chunk.end(), source.begin() + 3);
  DecodePlan plan;
  const Verdict v = plan.add_blosc(as_bytes(chunk), 3, 16, size);
  if (verdict != nullptr) *verdict = v;
  if (v != Verdict::planned) return {};
  Emulated result = emulate(plan, source, size + 32);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(result.target[i], 0xcd);
    EXPECT_EQ(result.target[16 + size + i], 0xcd);
  }
  if (result.status[0] != kDecoded) return {};
  return {result.target.begin() + 16,
          result.target.begin() + 16 + static_cast<std::ptrdiff_t>(size)};
}

TEST(Blosc, EqualsTheLibraryOverCodecsFiltersAndSizes) {
  int planned = 0;
  for (const char* codec : {"lz4", "lz4hc", "zlib", "zstd"})
    for (const int shuffle : {BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE})
      for (const std::size_t item : {1, 2, 3, 4, 8, 12, 16, 24})
        for (const Data kind : {Data::packed, Data::ramp, Data::noise})
          for (const std::size_t size : {1000, 4096, 50'001, 70'000})
            for (const std::size_t block : {0, 16384}) {
              const Bytes data = make_data(kind, size);
              const Bytes chunk = compressed(data, codec, 5, shuffle, item, block);
              Verdict verdict;
              const Bytes decoded = on_gpu_code(chunk, size, &verdict);
              ASSERT_EQ(verdict, Verdict::planned)
                  << codec << shuffle << " " << item << " " << size;
              ASSERT_TRUE(decoded == data)
                  << codec << shuffle << " " << item << " " << size << " " << block;
              ++planned;
            }
  EXPECT_GT(planned, 1000);
}

TEST(Blosc, DecodesLevelsAndLongChunks) {
  for (const char* codec : {"lz4", "zlib", "zstd"})
    for (const int level : {0, 1, 5, 9}) {
      const Bytes data = make_data(Data::packed, 1'200'008);
      const Bytes chunk = compressed(data, codec, level, BLOSC_SHUFFLE, 4, 0);
      ASSERT_TRUE(on_gpu_code(chunk, data.size()) == data) << codec << " " << level;
    }
}

TEST(Blosc, LeavesOtherCodecsToTheCpu) {
  const Bytes data = make_data(Data::text, 40'000);
  Verdict verdict;
  on_gpu_code(compressed(data, "blosclz", 5, BLOSC_SHUFFLE, 4, 0), data.size(), &verdict);
  EXPECT_EQ(verdict, Verdict::unsupported);
}

TEST(Blosc, SeveralChunksKeepTheirOwnStatus) {
  const Bytes data = make_data(Data::packed, 40'000);
  const Bytes chunk = compressed(data, "lz4", 5, BLOSC_SHUFFLE, 4, 0);
  Bytes source;
  DecodePlan plan;
  for (std::uint64_t i = 0; i < 3; ++i) {
    source.insert(source.end(), chunk.begin(), chunk.end());
    ASSERT_EQ(plan.add_blosc(as_bytes(chunk), i * chunk.size(), i * 40'000, 40'000),
              Verdict::planned);
  }
  for (const Lz4Stream& stream : plan.lz4_streams)
    if (stream.chunk == 1) std::memset(source.data() + stream.source, 0xff, stream.source_size);
  const Emulated result = emulate(plan, source, 120'000);
  EXPECT_EQ(result.status[0], kDecoded);
  EXPECT_EQ(result.status[1], kDamaged);
  EXPECT_EQ(result.status[2], kDecoded);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), result.target.begin()));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), result.target.begin() + 80'000));
}

/// Damaged containers: an accepted one must decode like in c-blosc.
void expect_agreement(const Bytes& chunk, std::size_t size) {
  const Bytes ours = on_gpu_code(chunk, size);
  if (ours.empty()) return;
  std::size_t decoded = 0, stored = 0, block = 0, validated = 0;
  blosc_cbuffer_sizes(chunk.data(), &decoded, &stored, &block);
  ASSERT_EQ(stored, chunk.size());
  ASSERT_EQ(decoded, size);
  ASSERT_GE(blosc_cbuffer_validate(chunk.data(), chunk.size(), &validated), 0);
  Bytes theirs(size);
  ASSERT_EQ(blosc_decompress_ctx(chunk.data(), theirs.data(), size, 1), static_cast<int>(size));
  ASSERT_TRUE(ours == theirs);
}

TEST(Blosc, AgreesWithTheLibraryOnFlippedBytes) {
  std::mt19937 random(3);
  for (const char* codec : {"lz4", "zlib", "zstd"})
    for (const int shuffle : {BLOSC_SHUFFLE, BLOSC_BITSHUFFLE}) {
      const Bytes chunk = compressed(make_data(Data::packed, 9'000), codec, 5, shuffle, 4, 4096);
      for (int round = 0; round < 1500; ++round) {
        Bytes flipped = chunk;
        // Mostly in the header and the block offsets.
        const std::size_t reach = round % 3 == 0 ? flipped.size() : 60;
        flipped[random() % reach] ^= static_cast<std::uint8_t>(1u << random() % 8);
        expect_agreement(flipped, 9'000);
      }
    }
}

TEST(Blosc, RefusesEveryTruncation) {
  for (const char* codec : {"lz4", "zlib", "zstd"}) {
    const Bytes chunk = compressed(make_data(Data::packed, 3'000), codec, 5, BLOSC_SHUFFLE, 4, 0);
    for (std::size_t size = 0; size < chunk.size(); ++size) {
      Bytes cut(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_TRUE(on_gpu_code(cut, 3'000).empty()) << size;
      if (size < 16) continue;
      const auto stored = static_cast<std::uint32_t>(size);  // a header that agrees
      std::memcpy(cut.data() + 12, &stored, sizeof stored);
      ASSERT_TRUE(on_gpu_code(cut, 3'000).empty()) << size;
    }
  }
}

TEST(Blosc, RefusesABlockThatReachesIntoTheNext) {
  // Two uncompressed blocks of 16 bytes, after their length; the second begins at byte 20's.
  Bytes chunk = {2, 1, 0x30, 1, 32, 0, 0, 0, 16, 0, 0, 0, 64, 0, 0, 0, 24, 0, 0, 0, 44, 0, 0, 0};
  for (int block = 0; block < 2; ++block) {
    chunk.insert(chunk.end(), {16, 0, 0, 0});
    for (std::uint8_t i = 0; i < 16; ++i) chunk.push_back(i % 4 == 0 ? 16 : 0);
  }
  EXPECT_EQ(on_gpu_code(chunk, 32).size(), 32);
  chunk[20] = 24;  // one and the same
  EXPECT_EQ(on_gpu_code(chunk, 32).size(), 32);
  chunk[20] = 32;
  Verdict verdict;
  on_gpu_code(chunk, 32, &verdict);
  EXPECT_EQ(verdict, Verdict::damaged);
}

TEST(Blosc, RefusesHugeCounts) {
  const Bytes chunk = compressed(make_data(Data::packed, 9'000), "lz4", 5, BLOSC_SHUFFLE, 4, 4096);
  for (const std::uint32_t size : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu})
    for (const std::size_t field : {4, 8, 12, 16}) {
      Bytes hostile = chunk;
      std::memcpy(hostile.data() + field, &size, sizeof size);
      EXPECT_TRUE(on_gpu_code(hostile, 9'000).empty()) << field << " " << size;
    }
}

TEST(Raw, CopiesAndUnshuffles) {
  for (const std::uint32_t item : {1, 2, 3, 4, 8, 13})
    for (const std::size_t size : {1, 7, 16, 1000, 70'001}) {
      const Bytes data = make_data(Data::noise, size);
      Bytes stored = data;  // numcodecs' Shuffle: whole items, the rest unshuffled
      const std::size_t items = size / item;
      for (std::size_t i = 0; i < items; ++i)
        for (std::size_t b = 0; b < item; ++b) stored[b * items + i] = data[i * item + b];
      DecodePlan plan;
      ASSERT_EQ(plan.add_raw(as_bytes(stored), 0, 0, size, item), Verdict::planned);
      EXPECT_TRUE(emulate(plan, stored, size).target == data) << item << " " << size;
    }
}

}  // namespace blosc_test
}  // namespace batchfs::gpu

#include "gpu/kernels/lz4.cuh"

#include <random>

#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>

#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace lz4_test {

using Bytes = std::vector<std::uint8_t>;

/// numcodecs' framing.
Bytes framed(std::uint32_t size, const Bytes& block) {
  Bytes chunk(sizeof size + block.size());
  std::memcpy(chunk.data(), &size, sizeof size);
  std::copy(block.begin(), block.end(), chunk.begin() + sizeof size);
  return chunk;
}

Bytes compressed(const Bytes& data, int level) {
  Bytes block(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(data.size()))));
  const auto* from = reinterpret_cast<const char*>(data.data());
  auto* to = reinterpret_cast<char*>(block.data());
  const int size = level == 0 ? LZ4_compress_default(from, to, static_cast<int>(data.size()),
                                                     static_cast<int>(block.size()))
                              : LZ4_compress_HC(from, to, static_cast<int>(data.size()),
                                                static_cast<int>(block.size()), level);
  block.resize(static_cast<std::size_t>(size));
  return block;
}

struct Outcome {
  bool good = false;
  Bytes data;
};

template <int kThreads = 64, int kTile = 512>
Outcome on_gpu_code(const Bytes& block, std::uint32_t size) {
  const Bytes chunk = framed(size, block);
  DecodePlan plan;
  if (plan.add_lz4(as_bytes(chunk), 0, 0, size) != Verdict::planned) return {};
  Emulated result = emulate<kThreads, kTile>(plan, chunk, size);
  return {result.status[0] == kDecoded, std::move(result.target)};
}

Outcome by_library(const Bytes& block, std::uint32_t size) {
  Outcome outcome;
  outcome.data.resize(size);
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()),
                                      reinterpret_cast<char*>(outcome.data.data()),
                                      static_cast<int>(block.size()), static_cast<int>(size));
  outcome.good = got >= 0 && static_cast<std::uint32_t>(got) == size;
  return outcome;
}

TEST(Lz4, EqualsTheLibraryOnEveryKindOfDataAndSize) {
  for (const Data kind : kAllData)
    for (const std::size_t size : {1, 5, 12, 13, 64, 255, 256, 257, 4096, 33333, 131072})
      for (const int level : {0, 9}) {
        const Bytes data = make_data(kind, size);
        const Outcome outcome =
            on_gpu_code(compressed(data, level), static_cast<std::uint32_t>(size));
        ASSERT_TRUE(outcome.good) << static_cast<int>(kind) << " " << size << " " << level;
        ASSERT_TRUE(outcome.data == data) << static_cast<int>(kind) << " " << size << " " << level;
      }
}

TEST(Lz4, DecodesALongBlockWithTheKernelsOwnShape) {
  for (const Data kind : {Data::packed, Data::zeros, Data::repeats}) {
    const Bytes data = make_data(kind, 3'000'001);
    const Outcome outcome = on_gpu_code<512, 8192>(compressed(data, 0), 3'000'001);
    ASSERT_TRUE(outcome.good);
    ASSERT_TRUE(outcome.data == data);
  }
}

TEST(Lz4, SequencesThatNeverFallIntoStepAreStillRead) {
  // Every sequence is {token 0, distance 4}: read one byte late, it is {token 4, distance 0}, again
  // and again.
  Bytes block = {0x40, 'a', 'b', 'c', 'd', 4, 0};
  Bytes expected = {'a', 'b', 'c', 'd', 'a', 'b', 'c', 'd'};
  for (int i = 0; i < 3000; ++i) {
    for (const std::uint8_t byte : {0x00, 0x04, 0x00}) block.push_back(byte);
    for (int k = 0; k < 4; ++k) expected.push_back(expected[expected.size() - 4]);
  }
  block.push_back(0xc0);
  for (int i = 0; i < 12; ++i) {
    block.push_back('z');
    expected.push_back('z');
  }
  const Outcome outcome = on_gpu_code(block, static_cast<std::uint32_t>(expected.size()));
  ASSERT_TRUE(outcome.good);
  EXPECT_TRUE(outcome.data == expected);
  EXPECT_TRUE(by_library(block, static_cast<std::uint32_t>(expected.size())).data == expected);
}

TEST(Lz4, RefusesEveryTruncation) {
  const Bytes data = make_data(Data::text, 3000);
  const Bytes block = compressed(data, 0);
  for (std::size_t size = 0; size < block.size(); ++size) {
    const Bytes cut(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(on_gpu_code(cut, 3000).good) << size;
  }
}

TEST(Lz4, RefusesAWrongSize) {
  const Bytes data = make_data(Data::text, 3000);
  const Bytes block = compressed(data, 0);
  EXPECT_FALSE(on_gpu_code(block, 2999).good);
  EXPECT_FALSE(on_gpu_code(block, 3001).good);
  const Bytes chunk = framed(3000, block);
  DecodePlan plan;
  EXPECT_EQ(plan.add_lz4(as_bytes(chunk), 0, 0, 3001), Verdict::damaged);
  EXPECT_EQ(plan.chunks(), 0u);
  EXPECT_TRUE(plan.lz4_streams.empty());
}

TEST(Lz4, AgreesWithTheLibraryOnFlippedBytes) {
  std::mt19937 random(7);
  int agreed = 0;
  for (const Data kind : kAllData) {
    const Bytes data = make_data(kind, 2000);
    const Bytes block = compressed(data, 0);
    for (int round = 0; round < 400; ++round) {
      Bytes flipped = block;
      for (unsigned k = 0; k <= random() % 3; ++k)
        flipped[random() % flipped.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
      const Outcome ours = on_gpu_code(flipped, 2000), theirs = by_library(flipped, 2000);
      // The library accepts a few ends that the format forbids: it decides about blocks that we
      // refuse.
      ASSERT_TRUE(!ours.good || (theirs.good && ours.data == theirs.data))
          << static_cast<int>(kind) << " " << round;
      agreed += ours.good == theirs.good;
    }
  }
  EXPECT_GT(agreed, 2700);  // of 2800
}

TEST(Lz4, RefusesHugeLengthsAndNoise) {
  Bytes lengths(70000, 0xff);  // one length of 17 million
  EXPECT_FALSE(on_gpu_code(lengths, 100'000).good);
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Bytes noise = make_data(Data::noise, 700, seed);
    const Outcome ours = on_gpu_code(noise, 4000), theirs = by_library(noise, 4000);
    ASSERT_EQ(ours.good, theirs.good);
  }
}

}  // namespace lz4_test
}  // namespace batchfs::gpu

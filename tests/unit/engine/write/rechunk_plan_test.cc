#include "engine/write/rechunk_plan.h"

#include <random>

#include <gtest/gtest.h>

namespace batchfs {
namespace rechunk_plan_test {

std::uint64_t bytes_of(const Dims& dims, std::uint64_t itemsize) {
  return static_cast<std::uint64_t>(element_count(dims)) * itemsize;
}

TEST(RechunkPlan, OnePassTakesWholeChunksOfBothSides) {
  const RechunkPlan plan = plan_rechunk({1000, 64, 128}, 4, {10, 64, 128}, {25, 32, 32}, 64 << 20);
  EXPECT_FALSE(plan.two_passes);
  EXPECT_EQ(plan.read_region, (Dims{50, 64, 128}));
  EXPECT_EQ(plan.read_region, plan.write_region);
  EXPECT_EQ(plan.read_bytes, 50u * 64 * 128 * 4);
}

TEST(RechunkPlan, TwoPassesGrowRegionsTowardsEachOther) {
  const std::uint64_t limit = 1 << 20;
  const RechunkPlan plan = plan_rechunk({10000, 200, 300}, 4, {1, 200, 300}, {10000, 5, 5}, limit);
  EXPECT_TRUE(plan.two_passes);
  EXPECT_EQ(plan.read_region, (Dims{1, 200, 300}));  // with its encoded pieces
  EXPECT_LE(2 * bytes_of(plan.read_region, 4), limit);
  EXPECT_LE(bytes_of(plan.write_region, 4), limit);
  EXPECT_EQ(plan.write_region[0], 10000);
}

TEST(RechunkPlan, AChunkThatDoesNotFitIsRefused) {
  try {
    plan_rechunk({1000, 1000}, 8, {1000, 1000}, {1, 1}, 1 << 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_NE(error.why().find("--memory"), std::string::npos) << error.why();
  }
}

TEST(RechunkPlan, ArraysWithoutDimensionsOrElementsHaveAPlan) {
  EXPECT_EQ(plan_rechunk({}, 8, {}, {}, 100).read_bytes, 8u);
  EXPECT_FALSE(plan_rechunk({0, 5}, 8, {1, 5}, {1, 5}, 100).two_passes);
}

TEST(RechunkPlan, RegionsAreWholeChunksWithinTheLimitForRandomShapes) {
  std::mt19937 random(7);
  const auto draw = [&random](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const auto is_whole = [](std::int64_t region, std::int64_t unit, std::int64_t all) {
    return region == all || region % unit == 0;
  };
  for (int i = 0; i < 2000; ++i) {
    Dims shape, read, write;
    for (std::int64_t d = draw(1, 4); d > 0; --d) {
      shape.push_back(draw(1, 60));
      read.push_back(draw(1, shape.back()));
      write.push_back(draw(1, shape.back() + 5));
    }
    Dims clipped = write;
    for (std::size_t d = 0; d < clipped.size(); ++d) clipped[d] = std::min(write[d], shape[d]);
    const std::uint64_t least = std::max(bytes_of(read, 4), bytes_of(clipped, 4));
    const std::uint64_t limit = 3 * least + 48 + static_cast<std::uint64_t>(draw(0, 1 << 16));
    const RechunkPlan plan = plan_rechunk(shape, 4, read, write, limit);
    EXPECT_LE(plan.read_bytes, limit);
    EXPECT_LE(plan.write_bytes, limit);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      EXPECT_TRUE(is_whole(plan.read_region[d], read[d], shape[d]));
      EXPECT_TRUE(is_whole(plan.write_region[d], write[d], shape[d]));
    }
    if (!plan.two_passes) {
      EXPECT_EQ(plan.read_region, plan.write_region);
    }
  }
}

}  // namespace rechunk_plan_test
}  // namespace batchfs

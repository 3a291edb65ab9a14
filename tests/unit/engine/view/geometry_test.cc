#include "engine/view/geometry.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace geometry_test {

using testing::ElementsAre;

/// One array of int32, cut into chunks.
BatchPlan plan_of(const Shape& shape, const Shape& chunks, const std::string& view) {
  MemoryData data;
  Names dims{"t", "y", "x"};
  dims.resize(shape.size());
  data.declare("v", "<i4", dims, shape, chunks);
  const auto v = parse_view(data.dataset(), view);
  assembled(*v, 0, 0);  // is right at all
  return v->plan(0, 0);
}

TEST(Geometry, AChunkThatLandsContiguouslyIsOnePart) {
  const BatchPlan plan = plan_of({8, 3, 4}, {4, 3, 4}, R"({"window": {"t": 1}, "batch": 8})");
  ASSERT_EQ(plan.chunks.size(), 2u);
  ASSERT_EQ(plan.parts.size(), 2u);
  EXPECT_EQ(plan.parts[0].source, (Box{{0, 0, 0}, {4, 3, 4}}));
  EXPECT_EQ(plan.parts[0].strides, (Dims{48, 16, 4}));
  EXPECT_EQ(plan.parts[1].offset, 4 * 48);
}

TEST(Geometry, WindowsThatContinueOneAnotherJoinAcrossSamples) {
  const BatchPlan plan = plan_of({8, 3, 4}, {8, 3, 4}, R"({"window": {"t": 2}, "batch": 4})");
  ASSERT_EQ(plan.parts.size(), 1u);
  EXPECT_EQ(plan.parts[0].source.shape, (Dims{8, 3, 4}));
}

TEST(Geometry, OverlappingWindowsDoNotJoin) {
  const BatchPlan plan =
      plan_of({4, 3, 4}, {4, 3, 4}, R"({"window": {"t": {"size": 2, "stride": 1}}, "batch": 3})");
  EXPECT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.parts.size(), 3u);
}

TEST(Geometry, ShuffledSamplesOfOneChunkAreOneUseOfIt) {
  const BatchPlan plan =
      plan_of({16, 3, 4}, {16, 3, 4},
              R"({"window": {"t": 1}, "batch": 16, "order": {"shuffle": "global"}})");
  ASSERT_EQ(plan.chunks.size(), 1u);
  EXPECT_EQ(plan.chunks[0].first_part, 0u);
  EXPECT_EQ(plan.chunks[0].part_count, plan.parts.size());
  EXPECT_GT(plan.parts.size(), 1u);
}

TEST(Geometry, ChunksAreInTheOrderTheyAreFirstNeeded) {
  const BatchPlan plan =
      plan_of({6, 2, 2}, {2, 2, 2},
              R"({"select": {"t": ["#5", "#0", "#4", "#2"]}, "window": {"t": 1}, "batch": 4})");
  std::vector<std::int64_t> chunks;
  for (const ChunkUse& use : plan.chunks) chunks.push_back(use.chunk);
  EXPECT_THAT(chunks, ElementsAre(2, 0, 1));
}

TEST(Geometry, AWindowOverTheEndOfACircleIsTwoRuns) {
  const BatchPlan plan =
      plan_of({1, 1, 6}, {1, 1, 6},
              R"({"window": {"x": {"size": 4, "stride": 4, "wrap": true}}, "batch": 2})");
  // Sample 0: 0 to 3; sample 1: 4, 5, then 0, 1. 4 and 5 continue the first part.
  ASSERT_EQ(plan.parts.size(), 2u);
  EXPECT_EQ(plan.parts[0].source, (Box{{0, 0, 0}, {1, 1, 6}}));
  EXPECT_EQ(plan.parts[1].source, (Box{{0, 0, 0}, {1, 1, 2}}));
  EXPECT_EQ(plan.parts[1].offset, 24);
}

TEST(Geometry, EveryWindowOfEveryGridIsExact) {
  // assembled() checks that each element of the batch is written once, from inside its chunk.
  for (const Shape& chunks :
       {Shape{1, 1, 1}, Shape{2, 2, 3}, Shape{5, 3, 7}, Shape{5, 1, 4}, Shape{3, 3, 2}})
    for (const char* window :
         {R"({"t": 2, "x": {"size": 3, "stride": 1}})",
          R"({"y": {"size": 2, "stride": 1}, "x": {"size": 5, "stride": 2, "wrap": true}})",
          R"({"x": {"size": 15, "stride": 4, "wrap": true}})", R"({"t": 1, "y": 1, "x": 1})"})
      for (const char* order : {"none", "global", "block"}) {
        const std::string view = R"({"window": )" + std::string(window) +
                                 R"(, "batch": 4, "order": {"shuffle": ")" + order + "\"}}";
        SCOPED_TRACE(view);
        MemoryData data;
        data.declare("v", "<i4", {"t", "y", "x"}, {5, 3, 7}, chunks);
        const auto v = parse_view(data.dataset(), view);
        for (std::int64_t b = 0; b < v->batches(); ++b) assembled(*v, 1, b);
      }
}

}  // namespace geometry_test
}  // namespace batchfs

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
  EXPECT_EQ(Box(plan.parts[0].source), (Box{{0, 0, 0}, {4, 3, 4}}));
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
  EXPECT_EQ(Box(plan.parts[0].source), (Box{{0, 0, 0}, {1, 1, 6}}));
  EXPECT_EQ(Box(plan.parts[1].source), (Box{{0, 0, 0}, {1, 1, 2}}));
  EXPECT_EQ(plan.parts[1].offset, 24);
}

TEST(Geometry, ARepeatedVariableIsOnePartForAllOfItsPlaces) {
  MemoryData data;
  data.declare("v", "<i4", {"t", "y", "x"}, {8, 3, 4}, {4, 3, 4})
      .declare("m", "<i4", {"y", "x"}, {3, 4}, {3, 4});
  const auto v = parse_view(data.dataset(), R"({"window": {"t": 4}, "batch": 2,
    "tensors": {"x": {"variables": ["v", "m"], "stack": "c", "broadcast": true}}})");
  const std::vector<std::int64_t> x = assembled(*v, 0, 0, {{"m", 1000}})[0];
  for (std::size_t sample = 0; sample < 2; ++sample)
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_EQ(x[((sample * 2 + 0) * 4 + t) * 12 + i],
                  static_cast<std::int64_t>((sample * 4 + t) * 12 + i));
        EXPECT_EQ(x[((sample * 2 + 1) * 4 + t) * 12 + i], 1000 + static_cast<std::int64_t>(i));
      }
  const BatchPlan plan = v->plan(0, 0);
  ASSERT_EQ(plan.chunks.size(), 3u);
  ASSERT_EQ(plan.chunks[1].part_count, 2u) << "the chunk of m: a part for each sample";
  ASSERT_EQ(plan.repeats.size(), 1u);
  EXPECT_EQ(plan.repeats[0].counts, (Dims{4}));
  EXPECT_EQ(plan.parts[plan.chunks[0].first_part].repeat, -1);
}

TEST(Geometry, ARepeatedVariableIsPaddedWhereTheOthersAre) {
  MemoryData data;
  data.declare("v", "<i4", {"t", "x"}, {7, 2}, {4, 2}).declare("m", "<i4", {"x"}, {2}, {2});
  const auto v = parse_view(data.dataset(), R"({"window": {"t": {"size": 3, "edge": "pad"}},
    "tensors": {"x": {"variables": ["m", "v"], "stack": "c", "dims": ["t", "c"], "broadcast": true,
                      "offsets": {"t": [-1, 0]}}}})");
  const BatchPlan plan = v->plan(0, v->batches() - 1);  // from 6 on: 5 to 7, 6 to 8, and 7 is not
  std::int64_t padded = 0;
  for (const Padding& padding : plan.paddings) padded += element_count(padding.shape);
  EXPECT_EQ(padded, (1 + 2) * 2 * 2);
  ASSERT_EQ(plan.repeats.size(), 2u);
  EXPECT_EQ(plan.repeats[0].counts, (Dims{2}));
  EXPECT_EQ(plan.repeats[1].counts, (Dims{1}));
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

#include "engine/view/samples/reach.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace reach_test {

TEST(MarkedCounts, CountAsASearchDoes) {
  const std::vector<bool> marked{true, false, false, true, true, false, true};
  const auto length = static_cast<std::int64_t>(marked.size());
  for (const bool circle : {false, true}) {
    const MarkedCounts counts(marked, circle);
    EXPECT_EQ(counts.all(), 4);
    for (std::int64_t begin = -20; begin < 30; ++begin)
      for (std::int64_t end = begin - 1; end < 40; ++end) {
        std::int64_t expected = 0;
        for (std::int64_t i = begin; i < end; ++i)
          if (circle || (i >= 0 && i < length))
            expected += marked[static_cast<std::size_t>(((i % length) + length) % length)] ? 1 : 0;
        ASSERT_EQ(counts.count(begin, end), expected) << begin << " " << end;
      }
  }
}

TEST(MarkedCounts, OfNothing) { EXPECT_EQ(MarkedCounts({}, true).count(-3, 5), 0); }

TEST(Reach, IsThatOfTheTensorsWithTheDimension) {
  const auto dataset = MemoryData()
                           .declare("v", "<f4", {"time", "x"}, {9, 3}, {4, 3})
                           .declare("m", "<f4", {"x"}, {3}, {3})
                           .dataset();
  const TensorDefinition v{
      .name = "v", .variables = {"v"}, .offsets = {{"time", {3, 1, 2}}}, .path = "tensors.v"};
  const TensorDefinition m{.name = "m", .variables = {"m"}, .path = "tensors.m"};
  const Reach reach = reach_of("time", 2, {v, m}, {}, *dataset);
  EXPECT_EQ(reach.footprint(10), (std::pair<std::int64_t, std::int64_t>{11, 15}));
  const Reach longer = reach_of("time", 2, {v, m}, {{"time", {-4, 9}, {}, "reserve"}}, *dataset);
  EXPECT_EQ(longer.footprint(10), (std::pair<std::int64_t, std::int64_t>{6, 21}));
  EXPECT_EQ(reach_of("x", 1, {v, m}, {}, *dataset).footprint(2),
            (std::pair<std::int64_t, std::int64_t>{2, 3}));
  EXPECT_EQ(reach_of("time", 2, {m}, {}, *dataset).footprint(4),
            (std::pair<std::int64_t, std::int64_t>{4, 6}));
  TensorDefinition repeated = m;
  repeated.broadcast = true;
  repeated.dims = {"time", "x"};
  EXPECT_EQ(reach_of("time", 2, {v, repeated}, {}, *dataset).footprint(10),
            (std::pair<std::int64_t, std::int64_t>{10, 15}));
  repeated.offsets = {{"time", {5}}};
  EXPECT_EQ(reach_of("time", 2, {v, repeated}, {}, *dataset).footprint(10),
            (std::pair<std::int64_t, std::int64_t>{11, 17}));
}

}  // namespace reach_test
}  // namespace batchfs

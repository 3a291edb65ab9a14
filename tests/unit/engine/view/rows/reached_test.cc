#include "engine/view/rows/reached.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace reached_test {

/// The positions of "time" that batches of a view hold, from their plans.
std::vector<std::int64_t> held(const View& view) {
  std::set<std::int64_t> positions;
  for (std::int64_t b = 0; b < view.batches(); ++b) {
    const BatchPlan plan = view.plan(0, b);
    for (const ChunkUse& use : plan.chunks) {
      const ChunkGrid& grid = view.variables()[use.variable]->array->grid();
      for (std::uint32_t p = use.first_part; p < use.first_part + use.part_count; ++p)
        for (std::int64_t i = 0; i < plan.parts[p].source.shape[0]; ++i)
          positions.insert(grid.chunk(use.chunk)[0] * grid.chunk_shape()[0] +
                           plan.parts[p].source.start[0] + i);
    }
  }
  return {positions.begin(), positions.end()};
}

TEST(Reached, IsWhatTheBatchesHold) {
  const auto dataset = MemoryData()
                           .declare("v", "<f4", {"time", "x"}, {8, 3}, {3, 2})
                           .index<std::int32_t>("time", "<i4", {0, 6, 12, 18, 36, 42, 48, 66},
                                                {{"units", "hours since 2000-01-01"}})
                           .dataset();
  for (
      const char* rest :
      {R"("window": {"time": {"size": 2, "stride": 1}}, "samples": {"spacing": {"time": "6h"}})",
       R"("window": {"time": {"size": 2, "stride": 1, "wrap": true}, "x": 1},
           "samples": {"where": {"time": ["#7"]}})",
       R"("window": {"time": 1}, "samples": {"where": {"time": {"hour": [0, 18]}}},
           "select": {"time": ["#6", "#3", "#1"]})",
       R"("window": {"time": 1}, "tensors": {"a": {"variables": ["v"], "offsets": {"time": ["-12h"]}},
           "b": {"variables": ["v"]}})",
       R"("window": {"time": {"size": 3, "edge": "pad"}}, "samples": {"where": {"time": ["#6"]}})"}) {
    const auto view = parse_view(dataset, std::string("{") + rest + "}");
    const std::vector<Positions> reached = reached_positions(scan_of(*view), 0);
    ASSERT_EQ(reached.size(), 2u);
    std::vector<std::int64_t> times;
    for (std::int64_t i = 0; i < reached[0].size(); ++i) times.push_back(reached[0][i]);
    EXPECT_THAT(times, testing::UnorderedElementsAreArray(held(*view))) << rest;
    EXPECT_EQ(reached[1].size(), 3);
  }
}

TEST(Reached, InWindowsIsWhatTheBatchesHold) {
  const auto dataset =
      MemoryData()
          .declare("v", "<f4", {"time", "x"}, {23, 3}, {3, 2})
          .index("time", "<i4", counting<std::int32_t>(23), {{"units", "hours since 2000-01-01"}})
          .dataset();
  for (
      const char* window :
      {R"("window": {"time": {"size": 4, "stride": 4}})",
       R"("window": {"time": {"size": 2, "stride": 5}})",
       R"("window": {"time": {"size": 5, "stride": 3}})", R"("window": {"time": 1})",
       R"("window": {"time": {"size": 3, "stride": 2, "wrap": true}, "x": 2})",
       R"("window": {"time": {"size": 3, "stride": 7}}, "select": {"time": {"from": "#4"}})",
       R"("window": {"time": 1}, "tensors": {"a": {"variables": ["v"], "offsets": {"time": ["6h"]}},
           "b": {"variables": ["v"]}})"}) {
    const auto view = parse_view(dataset, std::string("{") + window + R"(, "batch": 1})");
    const std::vector<Positions> found = positions_in_windows(*view, 0);
    ASSERT_EQ(found.size(), 2u);
    std::vector<std::int64_t> times;
    for (std::int64_t i = 0; i < found[0].size(); ++i) times.push_back(found[0][i]);
    EXPECT_THAT(times, testing::UnorderedElementsAreArray(held(*view))) << window;
  }
}

TEST(Reached, BytesAreThoseOfChunksThatBatchesTake) {
  const auto dataset = MemoryData().declare("v", "<f4", {"time", "x"}, {23, 8}, {3, 4}).dataset();
  const auto view = parse_view(
      dataset, R"({"window": {"time": {"size": 2, "stride": 9}, "x": {"size": 3, "stride": 3}}})");
  const auto bytes = bytes_to_read(*view);
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_EQ(bytes.begin()->second, 3 * 2 * 3 * 4 * 4)
      << "times 0, 9 and 18, all of x but the last two";
}

TEST(Reached, OfManyOffsetsIsNoLessThanTheBatchesHold) {
  const auto dataset =
      MemoryData()
          .declare("v", "<f4", {"time"}, {400}, {7})
          .index("time", "<i4", counting<std::int32_t>(400), {{"units", "hours since 2000-01-01"}})
          .dataset();
  std::string offsets = "0";
  for (int i = 1; i < 80; ++i) offsets += "," + std::to_string(2 * i);
  const auto view =
      parse_view(dataset, R"({"window": {"time": 1}, "samples": {"where": {"time": ["#3", "#230"]}},
                   "tensors": {"a": {"variables": ["v"], "offsets": {"time": [)" +
                              offsets + "]}}}}");
  const std::vector<Positions> reached = reached_positions(scan_of(*view), 0);
  EXPECT_EQ(reached[0].size(), 159 * 2);
}

}  // namespace reached_test
}  // namespace batchfs

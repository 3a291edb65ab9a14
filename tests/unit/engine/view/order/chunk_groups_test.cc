#include "engine/view/order/chunk_groups.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace chunk_groups_test {

/// Every variable of a dataset, under windows of one position along "time".
struct Times {
  explicit Times(const MemoryData& data, WindowGrid starts)
      : dataset(data.dataset()), grid(std::move(starts)) {
    for (const auto& [dim, size] : dataset->dims())
      selected.emplace(dim, Positions::range(0, size));
    for (const Variable& variable : dataset->variables()) variables.push_back(&variable);
  }
  WindowedVariables view() const { return {variables, selected, windows, grid}; }
  ChunkGroups::Axis axis() const {
    const ChunkGroups groups = chunk_groups(view());
    EXPECT_EQ(groups.axes.size(), 1u);
    return groups.axes[0];
  }
  std::int64_t mixing() const { return default_mixing(view(), chunk_groups(view())); }

  std::shared_ptr<const Dataset> dataset;
  WindowGrid grid;
  std::vector<const Variable*> variables;
  std::map<std::string, Positions> selected;
  std::vector<WindowDim> windows{{"time", 1, false}};
};

MemoryData chunks_of_8_and_2() {
  MemoryData data;
  data.declare("v", "<f4", {"time"}, {100}, {8})
      .declare("w", "<f4", {"x", "time"}, {3, 100}, {3, 2});
  return data;
}

void expect(const ChunkGroups::Axis& axis, std::int64_t positions, std::int64_t lead,
            std::int64_t group) {
  EXPECT_EQ(axis.positions, positions);
  EXPECT_EQ(axis.lead, lead);
  EXPECT_EQ(axis.group, group);
}

TEST(ChunkGroups, FollowTheLongestChunks) {
  expect(Times(chunks_of_8_and_2(), {{0}, {100}, {1}}).axis(), 100, 0, 8);
  expect(Times(chunks_of_8_and_2(), {{0}, {50}, {2}}).axis(), 50, 0, 4);  // every other step
}

TEST(ChunkGroups, BeginWithWhatComesBeforeABorder) {
  Times times(chunks_of_8_and_2(), {{0}, {90}, {1}});
  times.selected.insert_or_assign("time", Positions::range(5, 90));
  expect(times.axis(), 90, 3, 8);
  times.grid = {{2}, {40}, {2}};  // starts at 5 + 4, 5 + 6, ...: 15 is the last before 16
  expect(times.axis(), 40, 4, 4);
}

TEST(ChunkGroups, AreSpansOfChunks) {
  const Times times(chunks_of_8_and_2(), {{0}, {90}, {1}});
  const auto axis = [&](std::int64_t span) {
    return chunk_groups(times.view(), {{"time", span}}).axes[0];
  };
  expect(axis(1), 90, 0, 8);
  expect(axis(5), 90, 0, 40);
  try {
    axis(6);  // 48 of 90
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("order.span.time: groups of 6 chunks"), 0u);
  }
  EXPECT_THROW(axis(INT64_C(1) << 40), Error);
}

TEST(ChunkGroups, WithoutBordersToMeetBeginAnywhere) {
  expect(Times(chunks_of_8_and_2(), {{0}, {33}, {3}}).axis(), 33, 0, 2);
  Times times(chunks_of_8_and_2(), {{0}, {3}, {1}});
  times.selected.insert_or_assign("time", Positions::list({7, 3, 50}));
  expect(times.axis(), 3, 0, 3);  // fewer than a chunk has: one group
}

TEST(ChunkGroups, OfTheStartsThatAreLeft) {
  const auto starts = [](std::vector<std::int64_t> numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return WindowGrid{
        {0}, {count}, {2}, {std::make_shared<std::vector<std::int64_t>>(std::move(numbers))}};
  };
  // Positions 0, 2 and 6; 8; 18 and 22; 48: in chunks 0, 1, 2 and 6 of 8.
  const ChunkGroups::Axis uneven =
      Times(chunks_of_8_and_2(), starts({0, 1, 3, 4, 9, 11, 24})).axis();
  EXPECT_EQ(uneven.positions, 7);
  EXPECT_EQ(uneven.bounds, (std::vector<std::int64_t>{0, 3, 4, 6, 7}));
  // Two in each chunk.
  const ChunkGroups::Axis even = Times(chunks_of_8_and_2(), starts({0, 3, 4, 5, 40, 42})).axis();
  EXPECT_TRUE(even.bounds.empty());
  expect(even, 6, 0, 2);
  Times shifted(chunks_of_8_and_2(), starts({0, 1, 2, 3}));
  shifted.selected.insert_or_assign("time", Positions::range(4, 96));  // 4, 6, 8, 10
  expect(shifted.axis(), 4, 0, 2);
}

TEST(ChunkGroups, AsManyAreMixedAsDecodeTo128Megabytes) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "y", "x"}, {5000, 721, 1440}, {1, 721, 1440});
  EXPECT_EQ(Times(data, {{0}, {5000}, {1}}).mixing(), 32);  // (128 << 20) // (721 * 1440 * 4)
  data.declare("w", "<f4", {"time", "y", "x"}, {5000, 721, 1440}, {2, 721, 1440});
  EXPECT_EQ(Times(data, {{0}, {5000}, {1}}).mixing(), 8);  // groups of two steps, of both
  EXPECT_EQ(Times(chunks_of_8_and_2(), {{0}, {100}, {1}}).mixing(), 1024);
  MemoryData huge;
  huge.declare("v", "<f8", {"time", "x"}, {100, 1 << 20}, {50, 1 << 20});
  EXPECT_EQ(Times(huge, {{0}, {100}, {1}}).mixing(), 1);
}

}  // namespace chunk_groups_test
}  // namespace batchfs

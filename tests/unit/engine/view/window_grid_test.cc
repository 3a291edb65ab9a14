#include "engine/view/window_grid.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace window_grid_test {

using testing::ElementsAre;

struct WindowGridTest : testing::Test {
  WindowGrid grid(const std::vector<WindowSpec>& windows,
                  const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
    return window_grid(windows, ranges, *dataset, selected, times);
  }
  static std::vector<std::int64_t> starts(const WindowGrid& grid, std::size_t w) {
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < grid.counts[w]; ++i) found.push_back(grid.start(w, i));
    return found;
  }
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .index("time", "<i4", std::vector<std::int32_t>{0, 1, 2, 4, 5, 6, 8},
                 {{"units", "hours since 2000-01-01"}})
          .dataset();
  const std::map<std::string, Positions> selected{{"time", Positions::range(0, 7)},
                                                  {"x", Positions::range(0, 10)},
                                                  {"huge", Positions::range(0, INT64_C(1) << 60)}};
  TimeStepsByDim times{*dataset, selected};
};

TEST_F(WindowGridTest, StridesAndLabels) {
  WindowSpec every{.dim = "time"};
  every.every = parse_duration("2h");
  const WindowGrid found = grid({every, {.dim = "x", .size = 3, .stride = 2}}, {{-1, 0}, {-3, 1}});
  EXPECT_THAT(starts(found, 0), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(starts(found, 1), ElementsAre(4, 6));
  EXPECT_EQ(found.restricted(1), nullptr);
}

TEST_F(WindowGridTest, CountsAtMostSixtyBits) {
  EXPECT_EQ(grid({{.dim = "huge"}}, {{0, 0}}).counts[0], INT64_C(1) << 60);
  EXPECT_THROW(grid({{.dim = "huge"}, {.dim = "x"}}, {{0, 0}, {0, 0}}), Error);
}

}  // namespace window_grid_test
}  // namespace batchfs

#include "engine/view/axes.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "engine/dataset/dataset.h"
#include "engine/dataset/positions.h"
#include "engine/dataset/selector.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace axes_test {

using testing::ElementsAre;
using testing::StartsWith;

/// `cov` has the dimension `c` twice, the second time as `c:2`.
struct ViewAxesTest : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("cov", "<f4", {"time", "c", "c"}, {4, 3, 3}, {1, 3, 3})
          .index<std::int32_t>("c", "<i4", {10, 20, 30})
          .dataset();
};

using Selection = std::vector<std::pair<std::string, Selector>>;

std::pair<std::string, Selector> one(const std::string& dim, const std::string& selector) {
  return {dim, parse_selector(selector, "select." + dim)};
}

std::vector<std::int64_t> all(const Positions& positions) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < positions.size(); ++i) result.push_back(positions[i]);
  return result;
}

TEST_F(ViewAxesTest, ADimensionIsWholeUnlessItIsSelected) {
  const ViewAxes axes(*dataset, {one("time", "#1:#3")});
  EXPECT_EQ(axes.selected.size(), 3u);
  EXPECT_THAT(all(axes.along("time")), ElementsAre(1, 2));
  EXPECT_THAT(all(axes.along("c")), ElementsAre(0, 1, 2));
  EXPECT_THAT(all(axes.along("c:2")), ElementsAre(0, 1, 2));
  EXPECT_TRUE(axes.windows.empty());
}

TEST_F(ViewAxesTest, ARepetitionHasTheSelectionOfItsDimensionUnlessItIsNamed) {
  const ViewAxes both(*dataset, {one("c", "30,10")});
  EXPECT_THAT(all(both.along("c")), ElementsAre(2, 0));
  EXPECT_THAT(all(both.along("c:2")), ElementsAre(2, 0));
  const ViewAxes dropped(*dataset, {one("c", "20")});
  EXPECT_TRUE(dropped.along("c:2").drops_dim());
  for (const Selection& select : {Selection{one("c", "30,10"), one("c:2", "20,30")},
                                  Selection{one("c:2", "20,30"), one("c", "30,10")}}) {
    const ViewAxes named(*dataset, select);
    EXPECT_THAT(all(named.along("c")), ElementsAre(2, 0));
    EXPECT_THAT(all(named.along("c:2")), ElementsAre(1, 2));
  }
  const ViewAxes repetition(*dataset, {one("c:2", "10")});
  EXPECT_THAT(all(repetition.along("c")), ElementsAre(0, 1, 2));
  EXPECT_FALSE(repetition.along("c").drops_dim());
}

TEST_F(ViewAxesTest, ErrorsHaveThePathOfSelect) {
  const Error dim = error_of([&] { ViewAxes(*dataset, {one("tim", "#0")}); });
  EXPECT_EQ(dim.code(), ErrorCode::not_found);
  EXPECT_THAT(dim.why(), StartsWith("select.tim: no dimension 'tim', did you mean 'time'?"));
  const Error label = error_of([&] { ViewAxes(*dataset, {one("c", "40")}); });
  EXPECT_EQ(label.code(), ErrorCode::not_found);
  EXPECT_THAT(label.why(), StartsWith("select.c: no '40' in 'c'"));
}

TEST_F(ViewAxesTest, ArraysHaveThePositionsThatAreSelectedAtLast) {
  ViewAxes axes(*dataset, {one("c", "30,10")});
  const Variable& cov = dataset->variable("cov");
  EXPECT_THAT(all(axes.joined.along(cov, 1)), ElementsAre(2, 0));
  axes.selected.insert_or_assign("c", Positions::range(1, 1));  // as a mixture's windows are
  EXPECT_THAT(all(axes.joined.along(cov, 1)), ElementsAre(1));
  EXPECT_THAT(all(axes.joined.along(cov, 2)), ElementsAre(2, 0));
}

}  // namespace axes_test
}  // namespace batchfs

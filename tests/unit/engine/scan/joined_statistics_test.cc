#include "engine/scan/joined_statistics.h"

#include <gmock/gmock.h>

#include "engine/dataset/joined/join_sources.h"
#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace joined_statistics_test {

using testing::HasSubstr;

TEST(JoinedStatistics, AreRefusedWhereTheyWouldBeOfOtherPositions) {
  const MemoryData coarse =
      MemoryData().index<double>("x", "<f8", {1, 3}).declare("t", "<f4", {"x"}, {2}, {2});
  const MemoryData fine = MemoryData()
                              .index<double>("x", "<f8", {0.5, 1.5, 2.5, 3.5})
                              .declare("u", "<f4", {"x"}, {4}, {2});
  JoinRule twice;
  twice.ratio = 2;
  const auto dataset =
      join_sources({{"a", "sources.a", coarse.dataset(), {}, {}},
                    {"b", "sources.b", fine.dataset(), {{"x", "x", "j", twice}}, {"u"}}});
  const Variable& u = dataset->variable("b:u");
  EXPECT_NO_THROW(check_joined_statistics(u, {}));
  EXPECT_NO_THROW(check_joined_statistics(dataset->variable("t"), {"x"}));
  EXPECT_THAT(error_of([&] { check_joined_statistics(u, {"x"}); }).why(),
              HasSubstr("'b:u' is joined along 'x', which the view's split cuts"));
  EXPECT_EQ(no_numbers_per(u, "x"), "'b:u' has 2 positions for each of it");
  EXPECT_EQ(no_numbers_per(dataset->variable("t"), "x"), "");
}

}  // namespace joined_statistics_test
}  // namespace batchfs

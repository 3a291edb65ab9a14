#include "engine/dataset/positions.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace positions_test {

using List = std::vector<std::int64_t>;

List list(const Positions& positions) {
  List result;
  for (std::int64_t i = 0; i < positions.size(); ++i) result.push_back(positions[i]);
  return result;
}

TEST(Positions, ConsecutiveOnesAreARange) {
  EXPECT_TRUE(Positions::list({4, 5, 6}).is_range());
  EXPECT_TRUE(Positions::list({4}).is_range());
  EXPECT_FALSE(Positions::list({4}).drops_dim());
  EXPECT_FALSE(Positions::list({4, 6}).is_range());
  EXPECT_FALSE(Positions::list({5, 4}).is_range());
  EXPECT_EQ(list(Positions::list({5, 4})), (List{5, 4}));
  EXPECT_EQ(list(Positions::range(7, 2)), (List{7, 8}));
  EXPECT_TRUE(Positions::one(3).drops_dim());
  EXPECT_EQ(Positions::list({}).size(), 0);
}

TEST(Positions, HoldOnlyWhatLiesBetweenTheOuterGaps) {
  constexpr std::int64_t none = Positions::kNone;
  const Positions part = Positions::list({none, 4, 5, 6, none, none});
  EXPECT_EQ(list(part), (List{none, 4, 5, 6, none, none}));
  EXPECT_EQ(part.held().first, 1);
  EXPECT_EQ(part.held().end, 4);
  EXPECT_TRUE(part.has_gaps());
  EXPECT_FALSE(part.is_range());
  const Positions uneven = Positions::list({none, 4, none, 6});
  EXPECT_EQ(list(uneven), (List{none, 4, none, 6}));
  EXPECT_EQ(list(Positions::list({none, none})), (List{none, none}));
  EXPECT_FALSE(Positions::list({none}).is_range());
  EXPECT_EQ(list(Positions::one(none)), (List{none}));
  EXPECT_EQ(list(part.slice(0, 3)), (List{none, 4, 5}));
  EXPECT_EQ(list(part.slice(2, 3)), (List{5, 6, none}));
  EXPECT_EQ(list(part.slice(4, 2)), (List{none, none}));
  EXPECT_EQ(list(uneven.slice(1, 2)), (List{4, none}));
  EXPECT_TRUE(part.slice(1, 3).is_range());
  EXPECT_EQ(list(Positions::range(3, 2).within(1, 4)), (List{none, 3, 4, none}));
  EXPECT_EQ(list(part.within(1, 8)), (List{none, none, 4, 5, 6, none, none, none}));
  EXPECT_TRUE(Positions::range(3, 2).within(0, 2).is_range());
}

}  // namespace positions_test
}  // namespace batchfs

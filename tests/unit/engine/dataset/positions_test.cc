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

}  // namespace positions_test
}  // namespace batchfs

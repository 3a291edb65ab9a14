#include "engine/view/split/cell_counts.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace cell_counts_test {

TEST(CellCounts, EveryBoxOfThreeDimensions) {
  const std::vector<std::int64_t> shape{3, 1, 4};
  std::vector<bool> marked(12);
  for (std::size_t i = 0; i < marked.size(); ++i) marked[i] = i % 5 != 1;
  const CellCounts counts(shape, marked);
  for (std::int64_t a = 0; a < 3; ++a)
    for (std::int64_t b = a; b <= 3; ++b)
      for (std::int64_t c = 0; c < 4; ++c)
        for (std::int64_t d = c; d <= 4; ++d) {
          std::int64_t expected = 0;
          for (std::int64_t i = a; i < b; ++i)
            for (std::int64_t k = c; k < d; ++k)
              expected += marked[static_cast<std::size_t>(i * 4 + k)] ? 1 : 0;
          EXPECT_EQ(counts.count({{a, b}, {0, 1}, {c, d}}), expected);
          EXPECT_EQ(counts.count({{a, b}, {1, 1}, {c, d}}), 0);
        }
}

}  // namespace cell_counts_test
}  // namespace batchfs

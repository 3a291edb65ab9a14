#include "engine/view/view_limits.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace view_limits_test {

TEST(ViewLimits, LongDimensionsAreNotLookedThrough) {
  const auto dataset = MemoryData()
                           .declare("v", "<f4", {"x", "y"}, {1 << 26, (1 << 26) + 1}, {1 << 20, 1})
                           .dataset();
  check_restricted_length(*dataset, "x", "p");
  const Error error = error_of([&] { check_restricted_length(*dataset, "y", "p"); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_EQ(error.why(), "p: 'y' has 67108865 positions; the most is 67108864");
}

}  // namespace view_limits_test
}  // namespace batchfs

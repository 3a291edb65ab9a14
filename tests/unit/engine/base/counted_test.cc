#include "engine/base/counted.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace counted_test {

TEST(Counted, OneIsNotSeveral) {
  EXPECT_EQ(counted(0, "group"), "0 groups");
  EXPECT_EQ(counted(1, "group"), "1 group");
  EXPECT_EQ(counted(1, "batch", "batches"), "1 batch");
  EXPECT_EQ(counted(12345, "batch", "batches"), "12,345 batches");
}

}  // namespace counted_test
}  // namespace batchfs

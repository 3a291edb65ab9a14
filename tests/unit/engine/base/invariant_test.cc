#include "engine/base/invariant.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace invariant_test {

TEST(Invariant, GoesOnWhereItHolds) { check_invariant(true, "one is one"); }

TEST(InvariantDeathTest, EndsTheProcessWhereItDoesNot) {
  EXPECT_DEATH(check_invariant(false, "one is two"), "internal error: .* one is two");
}

}  // namespace invariant_test
}  // namespace batchfs

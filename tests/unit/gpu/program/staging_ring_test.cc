#include "gpu/program/staging_ring.h"

#include <gtest/gtest.h>

namespace batchfs::gpu {
namespace staging_ring_test {

TEST(StagingRing, RoomsFollowEachOtherAndAreUsedAgainInOrder) {
  StagingRing ring(100);
  const auto first = ring.reserve(40), second = ring.reserve(60);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->offset, 0u);
  EXPECT_EQ(second->offset, 40u);
  EXPECT_FALSE(ring.reserve(1));
  EXPECT_TRUE(ring.reserve(0));
  ring.free_up_to(first->end);
  const auto again = ring.reserve(40);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->offset, 0u);
}

TEST(StagingRing, NoRoomIsDividedByTheEnd) {
  StagingRing ring(100);
  const auto first = ring.reserve(70);
  ASSERT_TRUE(first);
  EXPECT_FALSE(ring.reserve(40));  // 30 at the end
  ring.free_up_to(first->end);
  const auto second = ring.reserve(70);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->offset, 0u);  // the 30 are passed over
  EXPECT_FALSE(ring.reserve(31));
}

TEST(StagingRing, AllOfItIsOneRoomWhereNothingIsReserved) {
  StagingRing ring(100);
  const auto first = ring.reserve(40), empty = ring.reserve(0);
  ASSERT_TRUE(first && empty);
  ring.free_up_to(first->end);
  const auto all = ring.reserve(100);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->offset, 0u);
  ring.free_up_to(empty->end);  // was reserved before
  EXPECT_FALSE(ring.reserve(1));
  ring.free_up_to(all->end);
  EXPECT_TRUE(ring.reserve(100));
}

}  // namespace staging_ring_test
}  // namespace batchfs::gpu

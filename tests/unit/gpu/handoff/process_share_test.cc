#include "gpu/handoff/process_share.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace batchfs::handoff {
namespace process_share_test {

TEST(ProcessShare, IsHalfOfTheMemory) {
  ProcessShare share(1000);
  int held = 0;
  for (; share.fits(10, 1000, false); ++held) share.take(10);
  EXPECT_EQ(held, 50);
  // A connection that holds none may still have some, up to three quarters.
  for (; share.fits(10, 1000, true); ++held) share.take(10);
  EXPECT_EQ(held, 75);
  for (int i = 0; i < 30; ++i) share.give_back(10);
  EXPECT_EQ(share.batches(), 45u);
  EXPECT_EQ(share.bytes(), 450u);
  EXPECT_TRUE(share.fits(10, 1000, false));
}

TEST(ProcessShare, HoldsTwoBatchesWhereThereIsRoomForThree) {
  for (const std::uint64_t limit : {30u, 39u}) {
    ProcessShare share(1000);
    int held = 0;
    for (; share.fits(10, limit, false); ++held) share.take(10);
    EXPECT_EQ(held, 2) << limit;
  }
  // With room for two, a reader alone must be able to hold one and wait for the next.
  ProcessShare share(1000);
  share.take(10);
  EXPECT_TRUE(share.fits(10, 20, false));
  share.take(10);
  EXPECT_FALSE(share.fits(10, 20, true));
  // The first always fits here; other limits decide whether there is room.
  EXPECT_TRUE(ProcessShare(1000).fits(10, 5, true));
}

TEST(ProcessShare, DeviceMemoryCountsAsBatchesOnly) {
  ProcessShare share(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(share.fits(1000, 1000, false));
    share.take(1000);
    share.leave_host(1000);
  }
  EXPECT_FALSE(share.fits(1, 1000, true)) << "descriptors are limited too";
  share.give_back(0);
  EXPECT_TRUE(share.fits(1000, 1000, false));
}

TEST(ProcessShare, WhatIsMadeAheadIsDividedAmongTheConnections) {
  ProcessShare share(1000);
  share.connections = 2;
  int held = 0;
  for (; share.fits_ahead(10, 1000); ++held) share.take(10);
  EXPECT_EQ(held, 25);
  EXPECT_TRUE(share.fits(10, 1000, false));
}

TEST(ProcessShare, LeavesDescriptorsForOthers) {
  rlimit before, few;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  few = before;
  few.rlim_cur = 600;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(most_batches_of_process(), 100u);  // of three descriptors each, half of all
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LE(most_batches_of_process(), 32765u);
}

}  // namespace process_share_test
}  // namespace batchfs::handoff

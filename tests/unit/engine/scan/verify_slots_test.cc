#include "engine/scan/verify_slots.h"

#include <thread>

#include <gtest/gtest.h>

namespace batchfs {
namespace verify_slots_test {

TEST(WorkSlots, HasRoomByMemoryAndByNumber) {
  int ticks = 0;
  WorkSlots slots(100, 2, [&] { return ++ticks < 3; });
  EXPECT_TRUE(slots.acquire(60));
  EXPECT_TRUE(slots.acquire(40));
  EXPECT_FALSE(slots.acquire(0)) << "two run, and the tick gives up";
  slots.release(40);
  ticks = 0;
  EXPECT_FALSE(slots.acquire(41)) << "no memory";
  ticks = 0;
  EXPECT_TRUE(slots.acquire(40));
  slots.release(40);
  slots.release(60);
  ticks = 0;
  EXPECT_TRUE(slots.acquire(1000)) << "alone";
  slots.release(1000);
}

TEST(WorkSlots, WaitsForWhatRuns) {
  WorkSlots slots(100, 1, [] { return true; });
  ASSERT_TRUE(slots.acquire(100));
  std::thread other([&] { slots.release(100); });
  EXPECT_TRUE(slots.acquire(100));
  other.join();
  std::thread last([&] { slots.release(100); });
  slots.wait();
  last.join();
}

}  // namespace verify_slots_test
}  // namespace batchfs

#include "engine/base/budget.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace budget_test {

TEST(Budget, GrantsUpToTheLimitAndTakesBack) {
  Budget budget(100);
  Budget::Reservation a = budget.try_reserve(60);
  ASSERT_TRUE(a);
  EXPECT_FALSE(budget.try_reserve(41));
  {
    Budget::Reservation b = budget.try_reserve(40);
    EXPECT_TRUE(b);
    EXPECT_EQ(budget.used(), 100u);
  }
  EXPECT_EQ(budget.used(), 60u);
  a.release();
  EXPECT_EQ(budget.used(), 0u);
}

TEST(Budget, ForcedReservationsGoOverAndBlockOthers) {
  Budget budget(100);
  Budget::Reservation waited = budget.reserve(150);
  EXPECT_EQ(budget.used(), 150u);
  EXPECT_FALSE(budget.try_reserve(1));
}

TEST(BudgetDeathTest, MoreIsNeverReleasedThanWasReserved) {
  EXPECT_DEATH(
      {
        Budget budget(100);
        const Budget::Reservation large = budget.reserve(~std::uint64_t{0});  // as -1 is
        budget.try_reserve(1);
      },
      "no more memory is released");
}

TEST(Budget, MovingKeepsOneOwner) {
  Budget budget(100);
  Budget::Reservation a = budget.try_reserve(10);
  Budget::Reservation b = std::move(a);
  a = budget.try_reserve(20);
  EXPECT_EQ(budget.used(), 30u);
  a = std::move(b);
  EXPECT_EQ(budget.used(), 10u);
}

TEST(Budget, NeverGoesOverUnderConcurrency) {
  Budget budget(1000);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const Budget::Reservation r = budget.try_reserve(static_cast<std::uint64_t>(i % 400));
        if (budget.used() > 1000) over = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(over);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(DefaultMemoryBudget, IsPositiveAndBelowMemory) {
  EXPECT_GT(default_memory_budget(), 1u << 20);
}

TEST(Budget, WhatIsOutsideCountsAsUsed) {
  Budget budget(100);
  budget.set_outside(70);
  EXPECT_FALSE(budget.try_reserve(31));
  const Budget::Reservation rest = budget.try_reserve(30);
  EXPECT_TRUE(rest);
  budget.set_outside(500);  // more than there is
  EXPECT_FALSE(budget.try_reserve(1));
  EXPECT_EQ(budget.used(), 30u);
  budget.set_outside(0);
  EXPECT_TRUE(budget.try_reserve(70));
}

TEST(CgroupMemory, IsWhatTheKernelCounts) {
  const auto now = cgroup_memory();
  if (!now) GTEST_SKIP() << "there is no memory cgroup here";
  EXPECT_GT(now->limit, 1u << 20);
  EXPECT_LE(now->shared, now->used);
  EXPECT_LE(default_memory_budget(), now->limit / 2);
}

TEST(Budget, ReservationsSplitAndJoin) {
  Budget budget(100);
  Budget::Reservation whole = budget.reserve(80);
  Budget::Reservation part = whole.split(30);
  EXPECT_EQ(part.bytes(), 30u);
  EXPECT_EQ(whole.bytes(), 50u);
  EXPECT_EQ(whole.split(70).bytes(), 50u);  // the available rest, returned at once
  EXPECT_EQ(budget.used(), 30u);
  Budget::Reservation sum;
  sum.absorb(std::move(part));
  sum.absorb(budget.reserve(5));
  EXPECT_EQ(sum.bytes(), 35u);
  EXPECT_EQ(budget.used(), 35u);
  sum.release();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(Budget::Reservation().split(10).bytes(), 0u);
}

TEST(Budget, AReservationMayOutliveIt) {
  Budget::Reservation left;
  {
    Budget budget(100);
    left = budget.reserve(10);
  }
  EXPECT_EQ(left.bytes(), 10u);
  left.release();
}

}  // namespace budget_test
}  // namespace batchfs

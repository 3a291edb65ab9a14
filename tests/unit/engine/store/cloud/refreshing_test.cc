#include "engine/store/cloud/refreshing.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace refreshing_test {

using std::chrono::seconds;

struct Fixture : testing::Test {
  WallTime time{};
  int fetched = 0;
  bool broken = false;
  std::optional<seconds> life = seconds(3600);
  Refreshing<int> value{
      [this] {
        if (broken) throw Error(ErrorCode::io, "no answer");
        ++fetched;
        return Expiring<int>{fetched, life ? std::optional(time + *life) : std::nullopt};
      },
      [this] { return time; }};
};
using RefreshingTest = Fixture;

TEST_F(RefreshingTest, FetchesOnceAndAheadOfTheEnd) {
  EXPECT_EQ(value.get(), 1);
  time += seconds(3600 - 301);
  EXPECT_EQ(value.get(), 1);
  time += seconds(2);
  EXPECT_EQ(value.get(), 2);
  EXPECT_EQ(value.get(), 2);
  EXPECT_EQ(fetched, 2);
}

TEST_F(RefreshingTest, WithoutAnEndItIsKept) {
  life.reset();
  EXPECT_EQ(value.get(), 1);
  time += seconds(1 << 30);
  EXPECT_EQ(value.get(), 1);
}

TEST_F(RefreshingTest, TheOldValueIsUsedWhileItIsGoodAndTheNextFails) {
  EXPECT_EQ(value.get(), 1);
  time += seconds(3600 - 100);
  broken = true;
  EXPECT_EQ(value.get(), 1);
  time += seconds(90);  // less than the margin is left
  EXPECT_THROW(value.get(), Error);
  broken = false;
  EXPECT_EQ(value.get(), 2);
}

TEST_F(RefreshingTest, AShortLifeIsNotFetchedForEachUse) {
  life = seconds(120);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value.get(), 1);
}

TEST_F(RefreshingTest, RefreshFetchesAlways) {
  EXPECT_EQ(value.get(), 1);
  EXPECT_EQ(value.refresh(), 2);
  EXPECT_EQ(value.get(), 2);
  broken = true;
  EXPECT_THROW(value.refresh(), Error);
  EXPECT_EQ(value.get(), 2);
}

TEST(Refreshing, ManyThreadsFetchOnce) {
  std::atomic<int> fetched{0};
  Refreshing<int> value(
      [&] {
        return Expiring<int>{++fetched, std::nullopt};
      },
      [] { return std::chrono::system_clock::now(); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_EQ(value.get(), 1); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fetched, 1);
}

}  // namespace refreshing_test
}  // namespace batchfs

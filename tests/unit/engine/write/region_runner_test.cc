#include "engine/write/region_runner.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace region_runner_test {

TEST(RunRegions, WritesComeAfterAllReadsAndMemoryIsBounded) {
  constexpr int kRegions = 200;
  std::atomic<int> held{0}, most{0}, done{0}, wrong{0};
  int next = 0;
  const auto work = [&]() -> std::shared_ptr<RegionWork> {
    if (next++ == kRegions) return nullptr;
    auto made = std::make_shared<RegionWork>();
    const auto reads = std::make_shared<std::atomic<int>>(0);
    made->memory = 10;
    made->read_count = 7;
    made->write_count = 3;
    made->begin = [&] {
      const int now = ++held;
      for (int before = most; before < now && !most.compare_exchange_weak(before, now);) {
      }
    };
    made->read = [reads](std::size_t) { ++*reads; };
    made->write = [&, reads](std::size_t) {
      if (*reads != 7) ++wrong;
    };
    made->done = [&] {
      --held;
      ++done;
    };
    return made;
  };
  for (const bool shared : {true, false}) {
    next = done = most = 0;
    EXPECT_TRUE(run_regions({3, 2, shared, 50}, work, [] { return true; }));
    EXPECT_EQ(done, kRegions);
    EXPECT_LE(most, 5);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(RunRegions, TheFirstErrorIsThrownAndNothingMoreIsBegun) {
  std::atomic<int> begun{0}, done{0};
  const auto work = [&]() {
    auto made = std::make_shared<RegionWork>();
    made->memory = 1;
    made->read_count = made->write_count = 1;
    made->begin = [&] { ++begun; };
    made->read = [&](std::size_t) {
      if (begun == 5) throw std::runtime_error("the fifth");
    };
    made->write = [](std::size_t) {};
    made->done = [&] { ++done; };
    return made;
  };
  EXPECT_THROW(run_regions({1, 1, true, 1}, work, [] { return true; }), std::runtime_error);
  EXPECT_EQ(done, 4);
  EXPECT_EQ(begun, 5);
}

TEST(RunRegions, EndsEarlyWhenAskedTo) {
  std::atomic<int> done{0};
  const auto work = [&]() {
    auto made = std::make_shared<RegionWork>();
    made->begin = [] {};
    made->done = [&] { ++done; };
    return made;
  };
  EXPECT_FALSE(run_regions({1, 1, true, 1}, work, [&] { return done < 10; }));
  EXPECT_GE(done, 10);
}

TEST(RunRegions, RegionsThatHaveBegunAreLeftOutToo) {
  std::atomic<int> written{0};
  std::atomic<bool> go_on{true};
  int next = 0;
  const auto work = [&]() -> std::shared_ptr<RegionWork> {
    if (next++ == 20) return nullptr;
    auto made = std::make_shared<RegionWork>();
    made->write_count = 10;
    made->begin = [] {};
    made->write = [&](std::size_t) {
      if (++written == 5) go_on = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    made->done = [] {};
    return made;
  };
  EXPECT_FALSE(run_regions({1, 1, true, 1000}, work, [&] { return go_on.load(); }));
  EXPECT_LT(written, 200);
}

}  // namespace region_runner_test
}  // namespace batchfs

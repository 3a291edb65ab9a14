#include "engine/write/recorded_run.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

namespace batchfs {
namespace recorded_run_test {

class RecordedRunTest : public testing::Test {
 protected:
  RecordedRunTest() { std::filesystem::remove_all(path_); }
  ~RecordedRunTest() override { std::filesystem::remove_all(path_); }

  /// The units that a next process finds done, of `units` units.
  std::vector<bool> done(int units) const {
    RunRecord record(*output_, {{"a", 1}}, 0, 1);
    record.open();
    std::vector<bool> result;
    for (int unit = 0; unit < units; ++unit) result.push_back(record.is_done(unit));
    return result;
  }

  const std::string path_ = testing::TempDir() + "recorded_run-" + std::to_string(::getpid());
  const std::shared_ptr<OutputStore> output_ = open_local_output(path_);
  const RegionLimits one_at_a_time_{1, 1, true, 1};
};

/// Units 0 to count - 1, each of which does `work` and is then recorded with an amount of 10.
std::function<std::shared_ptr<RegionWork>()> units(RecordedRun& run, int count,
                                                   const std::function<void(int)>& work) {
  return [&run, count, work, next = 0]() mutable -> std::shared_ptr<RegionWork> {
    if (next == count) return nullptr;
    const int unit = next++;
    auto made = std::make_shared<RegionWork>();
    made->memory = 1;
    made->begin = [unit, work] { work(unit); };
    made->done = [&run, unit] { run.note_done(unit, 10); };
    return made;
  };
}

TEST_F(RecordedRunTest, WhatIsDoneIsRecorded) {
  std::int64_t last = 0, most = 0;
  {
    RunRecord record(*output_, {{"a", 1}}, 0, 1);
    record.open();
    RecordedRun run(record, {.progress = [&](std::int64_t now, std::int64_t all) {
                      EXPECT_GE(now, last);
                      last = now;
                      most = all;
                    }});
    run.expect(5, 45);
    EXPECT_TRUE(run.run(one_at_a_time_, units(run, 4, [](int) {})));
  }
  EXPECT_EQ(done(5), (std::vector<bool>{true, true, true, true, false}));
  EXPECT_GE(last, 5);
  EXPECT_EQ(most, 45);
}

TEST_F(RecordedRunTest, AnErrorKeepsWhatWasDoneBefore) {
  {
    RunRecord record(*output_, {{"a", 1}}, 0, 1);
    record.open();
    int saved = 0;
    RecordedRun run(record, {.before_save = [&] { ++saved; }});
    EXPECT_THROW(run.run(one_at_a_time_, units(run, 4,
                                               [](int unit) {
                                                 if (unit == 2) throw std::runtime_error("full");
                                               })),
                 std::runtime_error);
    EXPECT_GE(saved, 1);
  }
  EXPECT_EQ(done(3), (std::vector<bool>{true, true, false}));
}

TEST_F(RecordedRunTest, ACancelledRunEndsWorkThatAsks) {
  {
    RunRecord record(*output_, {{"a", 1}}, 0, 1);
    record.open();
    bool cancel = false;
    RecordedRun run(record, {.cancelled = [&] { return cancel; }});
    EXPECT_NO_THROW(run.keep_up());
    EXPECT_FALSE(run.run(one_at_a_time_, units(run, 4, [&](int unit) {
                           if (unit != 1) return;
                           cancel = true;
                           run.keep_up();
                           FAIL();
                         })));
  }
  EXPECT_EQ(done(3), (std::vector<bool>{true, false, false}));
}

TEST_F(RecordedRunTest, UnitsAreRecordedWhileItRuns) {
  RunRecord record(*output_, {{"a", 1}}, 0, 1);
  record.open();
  RecordedRun run(record, {}, std::chrono::milliseconds(0));
  EXPECT_TRUE(run.run(one_at_a_time_, units(run, 2, [&](int unit) {
                        if (unit != 1) return;
                        for (int i = 0; i < 1000 && !output_->get(".batchfs/done-0.json"); ++i) {
                          run.keep_up();
                          std::this_thread::sleep_for(std::chrono::milliseconds(10));
                        }
                        EXPECT_TRUE(output_->get(".batchfs/done-0.json"));
                      })));
}

TEST_F(RecordedRunTest, RegionsBeginWhileADiskIsSlow) {
  RunRecord record(*output_, {{"a", 1}}, 0, 1);
  record.open();
  std::atomic<bool> saves{false}, last_began{false};
  RecordedRun run(record,
                  {.before_save =
                       [&] {
                         saves = true;
                         for (int i = 0; i < 1000 && !last_began; ++i)
                           std::this_thread::sleep_for(std::chrono::milliseconds(10));
                         EXPECT_TRUE(last_began);
                       }},
                  std::chrono::milliseconds(0));
  EXPECT_TRUE(run.run(one_at_a_time_, units(run, 4, [&](int unit) {
                        for (int i = 0; i < 1000 && unit == 2 && !saves; ++i) {
                          run.keep_up();
                          std::this_thread::sleep_for(std::chrono::milliseconds(10));
                        }
                        if (unit == 3) last_began = true;
                      })));
  EXPECT_TRUE(saves);
  for (int unit = 0; unit < 4; ++unit) EXPECT_TRUE(record.is_done(unit)) << unit;
}

TEST_F(RecordedRunTest, AnErrorOfSavingEndsTheRun) {
  RunRecord record(*output_, {{"a", 1}}, 0, 1);
  record.open();
  RecordedRun run(record, {.before_save = [] { throw Error(ErrorCode::io, "the disk is full"); }},
                  std::chrono::milliseconds(0));
  EXPECT_THROW(run.run(one_at_a_time_, units(run, 4, [](int) {})), Error);
}

}  // namespace recorded_run_test
}  // namespace batchfs

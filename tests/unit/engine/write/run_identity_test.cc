#include "engine/write/run_identity.h"

#include <atomic>
#include <barrier>
#include <filesystem>
#include <thread>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

namespace batchfs {
namespace run_identity_test {

class RunIdentityTest : public testing::Test {
 protected:
  RunIdentityTest() { std::filesystem::remove_all(path_); }
  ~RunIdentityTest() override { std::filesystem::remove_all(path_); }
  const std::string path_ = testing::TempDir() + "run_identity-" + std::to_string(::getpid());
  const std::shared_ptr<OutputStore> output_ = open_local_output(path_);
};

TEST_F(RunIdentityTest, TheFirstClaimCounts) {
  const Json mine = {{"command", "check"}, {"view", "1"}}, other = {{"command", "check"}};
  EXPECT_THROW(read_identity(*output_), Error);
  claim_output(*output_, mine);
  EXPECT_NO_THROW(claim_output(*output_, mine));
  EXPECT_EQ(read_identity(*output_), mine);
  EXPECT_THROW(claim_output(*output_, other), Error);
  try {
    check_identity(*output_, mine, {{"command", "check"}, {"view", "2"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.why().find("\"view\" differs"), std::string::npos) << error.why();
  }
}

TEST_F(RunIdentityTest, AnotherVersionOfTheSourceIsNamedByItsArrays) {
  const Json begun = {{"command", "rechunk"}, {"id", "1"}, {"source", {{"t", "1"}, {"u", "1"}}}};
  Json now = begun;
  now["source"]["u"] = "2";
  now["id"] = "2";
  claim_output(*output_, begun);
  try {
    claim_output(*output_, now);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stale);
    EXPECT_EQ(
        error.why(),
        "the store has changed since the run began: objects of 'u' are of another version, "
        "and the output would mix both; remove the output to begin anew, or name a new place");
  }
  // Differences of the command line are reported first.
  now["command"] = "export";
  try {
    claim_output(*output_, now);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.why().find("\"command\" differs"), std::string::npos) << error.why();
  }
}

TEST_F(RunIdentityTest, OfTwoThatBeginAtOnceTheOutputIsOfTheOneThatClaimedIt) {
  for (int round = 0; round < 50; ++round) {
    std::filesystem::remove_all(path_);
    constexpr int kRuns = 4;
    std::barrier begin(kRuns);
    std::atomic<int> claimed = 0, owner = -1;
    std::vector<std::thread> threads;
    for (int run = 0; run < kRuns; ++run)
      threads.emplace_back([&, run] {
        const std::shared_ptr<OutputStore> output = open_local_output(path_);
        begin.arrive_and_wait();
        try {
          claim_output(*output, {{"run", run}});
          owner = run;
          ++claimed;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.why();
        }
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(claimed, 1) << "round " << round;
    ASSERT_EQ(read_identity(*output_), Json({{"run", owner.load()}}));
    EXPECT_FALSE(std::filesystem::exists(path_ + "/.batchfs/lock-claim"));
  }
}

TEST_F(RunIdentityTest, ALockHoldsAfterWorkingFilesWereRemoved) {
  auto held = output_->lock("lock-0");
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(open_local_output(path_)->lock("lock-0"), nullptr);
  output_->discard_working_files();
  // The finished run holds a lock of a removed file; of the runs after it, one gets the new lock.
  const auto next = open_local_output(path_)->lock("lock-0");
  EXPECT_NE(next, nullptr);
  EXPECT_EQ(open_local_output(path_)->lock("lock-0"), nullptr);
}

TEST_F(RunIdentityTest, WorkingFilesAreRemovedAndLockedByManyAtOnce) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&] {
      const std::shared_ptr<OutputStore> output = open_local_output(path_);
      for (int round = 0; round < 300; ++round) {
        std::unique_ptr<OutputStore::Lock> lock;
        EXPECT_NO_THROW(lock = output->lock("lock-0"));
        EXPECT_NO_THROW(output->discard_working_files());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RunIdentityTest, AFolderOfSomethingElseIsRefused) {
  output_->put("notes.txt", "mine");
  EXPECT_THROW(claim_output(*output_, {{"a", 1}}), Error);
}

}  // namespace run_identity_test
}  // namespace batchfs

#include "tools/service/generations/first_generation.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "fs/session_state.h"
#include "tests/unit/eventually.h"
#include "tests/unit/tools/service/generations/growing_store.h"

namespace batchfs {
namespace first_generation_test {

class FirstGenerationTest : public testing::Test {
 protected:
  ~FirstGenerationTest() override { ::close(fd_); }
  GenerationOptions options() const {
    GenerationOptions options = store_.options();
    options.session = fd_;
    return options;
  }
  std::shared_ptr<Generation> next(const std::string& refusal = "") {
    auto generation = first_generation(options(), engine_, log_, refusal);
    generation->begin(fd_);
    return generation;
  }

  GrowingStore store_;
  Log log_;
  Engine engine_{{.threads = 2, .memory = 64 << 20}, log_};
  const int fd_ = SessionState::create();
};

TEST_F(FirstGenerationTest, TheFirstProcessBeginsTheSession) {
  const auto first = next();
  EXPECT_EQ(first->number, kFirstReading);
  EXPECT_EQ(first->time, SessionState(fd_).mount_time());
  EXPECT_EQ(SessionState(fd_).reading().identity, first->identity());
}

TEST_F(FirstGenerationTest, TheNextContinuesTheNewestReading) {
  next();
  store_.grow_to(6);
  auto newest = read_generation(options(), log_);
  newest->resolve(options(), engine_, log_);
  newest->time = 12345;
  newest->begin(fd_);
  newest->versions.table->accept("of the newest", 5);
  newest = nullptr;
  const auto after = next("refused");
  EXPECT_EQ(after->number, 2u);
  EXPECT_EQ(after->time, 12345);
  EXPECT_EQ(after->versions.table->find("of the newest"), 5u);
}

TEST_F(FirstGenerationTest, AChangedStoreIsAnotherReading) {
  const std::string before = next()->identity();
  store_.grow_to(6);
  const auto after = next();
  EXPECT_EQ(after->number, 2u);
  EXPECT_NE(after->identity(), before);
  EXPECT_EQ(after->views[0]->batches(), 3);
  EXPECT_EQ(next("refused")->number, 2u);
}

TEST_F(FirstGenerationTest, OrItIsRefused) {
  next();
  store_.grow_to(6);
  try {
    next("no other state");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stale);
    EXPECT_EQ(error.why(), "no other state");
  }
  EXPECT_EQ(SessionState(fd_).reading().number, kFirstReading);
}

TEST_F(FirstGenerationTest, AViewThatDoesNotFitYetIsWaitedFor) {
  next();
  const auto write_view = [this](const std::string& text) {
    std::ofstream(store_.folder() + "/v.json") << text;
  };
  write_view(R"({"name": "v", "window": {"hour": 1}, "batch": 2})");
  std::jthread writer([&] {
    // The first attempt has failed.
    EXPECT_TRUE(
        eventually([this] { return log_.text().find("is tried again") != std::string::npos; }));
    write_view(R"({"name": "v", "window": {"time": 1}, "batch": 1})");
  });
  const auto after = next();
  EXPECT_EQ(after->number, 2u);
  EXPECT_EQ(after->views[0]->batches(), 4);
}

TEST_F(FirstGenerationTest, AStoreThatIsGoneIsAnError) {
  next();
  std::filesystem::remove_all(store_.folder() + "/s.zarr");
  EXPECT_THROW(next(), Error);
  EXPECT_EQ(SessionState(fd_).reading().number, kFirstReading);
}

TEST_F(FirstGenerationTest, AReadingThatAnotherProcessFollowedIsStale) {
  const auto first = next();
  const auto replacing = first_generation(options(), engine_, log_);
  auto newer = read_generation(options(), log_);
  newer->resolve(options(), engine_, log_);
  newer->begin(fd_);
  EXPECT_THROW(replacing->begin(fd_), Error);
  EXPECT_NO_THROW(newer->begin(fd_));
}

TEST_F(FirstGenerationTest, WithoutASessionNothingIsKept) {
  const auto first = first_generation(store_.options(), engine_, log_);
  EXPECT_EQ(first->number, 0u);
  EXPECT_EQ(first->versions.table, nullptr);
}

TEST(FirstGeneration, OnlyTheSnapshotOfTheSameBranchIsPinned) {
  EXPECT_EQ(pinned_snapshot("", {}), "");
  EXPECT_EQ(pinned_snapshot("3 abc 0123", {}), "");
  IcechunkOptions by_tag;
  by_tag.tag = "v1";
  EXPECT_EQ(pinned_snapshot("3 abc 0123 4567", by_tag), "");
}

TEST(FirstGeneration, SnapshotsOfFurtherStoresArePinned) {
  std::vector<StoreOptions::Named> others{{"rain", "/r"}, {"sst", "/s"}};
  pin_others("3 abc 0123 4567 rain=xyz", others);
  EXPECT_EQ(others[0].pinned, "xyz");
  EXPECT_EQ(others[1].pinned, "");
}

}  // namespace first_generation_test
}  // namespace batchfs

#include "fs/open_table.h"

#include <algorithm>
#include <functional>
#include <new>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace batchfs {
namespace open_table_test {

/// A file with this number of bytes in memory, or none.
class FakeFile final : public OpenFile {
 public:
  explicit FakeFile(std::uint64_t size = 0, bool in_memory = true, int contents = 0)
      : memory_(MemoryFiles(false).create("test", size)), in_memory_(in_memory) {
    std::fill_n(memory_.data(), size, static_cast<std::byte>(contents));
  }
  const MemoryFile* memory_file() const override { return in_memory_ ? &memory_ : nullptr; }
  void read(std::uint64_t, std::uint64_t, ReadDone done) override { done({}, nullptr); }

 private:
  MemoryFile memory_;
  bool in_memory_;
};

class OpenTableTest : public testing::Test {
 protected:
  void TearDown() override { ::close(fd_); }
  OpenTable::Kernel kernel() {
    return {[this](int) -> std::int32_t {
              if (refuses_) throw Error(ErrorCode::not_supported, "no backing files today");
              backings_.insert(++last_);
              return last_;
            },
            [this](std::int32_t id) { EXPECT_EQ(backings_.erase(id), 1u); },
            [](Ino ino) { return "views/v/file-" + std::to_string(ino); }};
  }
  const int fd_ = SessionState::create();
  SessionState state_{fd_};
  Log log_;
  bool refuses_ = false;
  std::int32_t last_ = 40;
  std::set<std::int32_t> backings_;  // that the kernel has
  const std::shared_ptr<OpenFile> file_ = std::make_shared<FakeFile>(100);
};

TEST_F(OpenTableTest, AnOpenThatFailedLeavesNothing) {
  OpenTable table(&state_,
                  {[](int) -> std::int32_t { throw std::bad_alloc(); }, [](std::int32_t) {}}, log_);
  EXPECT_THROW(table.open(5, file_, true), std::bad_alloc);
  EXPECT_FALSE(table.open_again(5));
  EXPECT_TRUE(state_.opened_files().empty());
  EXPECT_EQ(table.open(5, file_, false).file, file_);
}

TEST_F(OpenTableTest, HandlesOfAFileShareWhatServesIt) {
  OpenTable table(nullptr, kernel(), log_);
  EXPECT_FALSE(table.open_again(5));
  const auto first = table.open(5, file_, true);
  EXPECT_EQ(first.backing_id, 41);
  EXPECT_EQ(first.file, file_);
  const auto second = table.open_again(5).value();
  // Another that was made meanwhile is not used.
  const auto third = table.open(5, std::make_shared<FakeFile>(100), true);
  EXPECT_EQ(second.backing_id, 41);
  EXPECT_EQ(third.backing_id, 41);
  EXPECT_EQ(third.file, file_);
  EXPECT_EQ((std::set{first.handle, second.handle, third.handle}.size()), 3u);
  for (const auto& opening : {first, second, third}) EXPECT_EQ(table.find(opening.handle), file_);
  table.release(first.handle, 5);
  table.release(third.handle, 5);
  EXPECT_EQ(table.find(first.handle), nullptr);
  EXPECT_EQ(backings_, std::set{41});
  table.release(second.handle, 5);
  EXPECT_TRUE(backings_.empty());
  EXPECT_FALSE(table.open_again(5));
  EXPECT_EQ(file_.use_count(), 4);  // here, and in the three openings
}

TEST_F(OpenTableTest, OnlyWhatLiesInMemoryIsReadByTheKernel) {
  OpenTable table(nullptr, kernel(), log_);
  EXPECT_EQ(table.open(1, file_, false).backing_id, 0);
  EXPECT_EQ(table.open(2, std::make_shared<FakeFile>(100, false), true).backing_id, 0);
  EXPECT_EQ(table.open(3, std::make_shared<FakeFile>(0), true).backing_id, 0);
  EXPECT_EQ(table.open_again(1).value().backing_id, 0);
  EXPECT_TRUE(backings_.empty());
}

TEST_F(OpenTableTest, WhatTheKernelRefusesIsServedHere) {
  OpenTable table(&state_, kernel(), log_);
  refuses_ = true;
  const auto opening = table.open(1, file_, true);
  EXPECT_EQ(opening.backing_id, 0);
  EXPECT_EQ(table.find(opening.handle), file_);
  EXPECT_NE(log_.text().find("no backing files today"), std::string::npos);
  ASSERT_EQ(state_.opened_files().size(), 1u);
  EXPECT_EQ(state_.opened_files()[0].backing_id, 0);
  EXPECT_NE(state_.opened_files()[0].digest, ContentDigest{});
}

TEST_F(OpenTableTest, TheStateSaysWhatTheKernelHas) {
  OpenTable table(&state_, kernel(), log_);
  const auto first = table.open(7, file_, true);
  const auto second = table.open_again(7).value();
  ASSERT_EQ(state_.opened_files().size(), 1u);
  EXPECT_EQ(state_.opened_files()[0].ino, 7u);
  EXPECT_EQ(state_.opened_files()[0].backing_id, 41);
  EXPECT_EQ(state_.opened_files()[0].handles, 2u);
  table.release(first.handle, 7);
  EXPECT_EQ(state_.opened_files()[0].handles, 1u);
  table.release(second.handle, 7);
  EXPECT_TRUE(state_.opened_files().empty());
}

TEST_F(OpenTableTest, TheNextDaemonKnowsTheFilesButNotTheHandles) {
  std::uint64_t old[2];
  {
    OpenTable before(&state_, kernel(), log_);
    old[0] = before.open(7, file_, true).handle;
    old[1] = before.open_again(7).value().handle;
  }
  OpenTable table(&state_, kernel(), log_);
  EXPECT_EQ(table.find(old[0]), nullptr);
  const auto opening = table.open_again(7).value();
  EXPECT_EQ(opening.backing_id, 41);
  EXPECT_EQ(opening.file, nullptr);
  EXPECT_NE(opening.handle, old[0]);
  EXPECT_NE(opening.handle, old[1]);
  EXPECT_EQ(state_.opened_files()[0].handles, 3u);
  table.release(old[1], 7);
  table.release(opening.handle, 7);
  EXPECT_EQ(backings_, std::set{41});
  table.release(old[0], 7);
  EXPECT_TRUE(backings_.empty());
  EXPECT_TRUE(state_.opened_files().empty());
}

TEST_F(OpenTableTest, AnAdoptedHandleCountsOnce) {
  std::uint64_t old = 0;
  {
    OpenTable before(&state_, kernel(), log_);
    old = before.open(7, file_, true).handle;
  }
  OpenTable table(&state_, kernel(), log_);
  for (int twice = 0; twice < 2; ++twice) table.adopt(old, 7, file_);
  EXPECT_EQ(table.find(old), file_);
  EXPECT_EQ(state_.opened_files()[0].handles, 1u);
  table.release(old, 7);
  EXPECT_TRUE(backings_.empty());
  EXPECT_FALSE(table.open_again(7));
}

TEST_F(OpenTableTest, AnAdoptedHandleOfAFileThatIsServedHere) {
  const auto values = std::make_shared<FakeFile>(0, false);
  OpenTable table(&state_, kernel(), log_);
  table.adopt(3, 9, values);  // nothing of it was left: it does not lie in memory
  EXPECT_EQ(table.find(3), values);
  const auto opening = table.open_again(9).value();
  EXPECT_EQ(opening.file, values);
  table.release(3, 9);
  EXPECT_TRUE(table.open_again(9));
}

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

/// Opened by a daemon that died, without passthrough.
class TakenOverTest : public OpenTableTest {
 protected:
  TakenOverTest() {
    OpenTable before(&state_, kernel(), log_);
    for (const Ino ino : {7, 8}) handles_.push_back(before.open(ino, file_, false).handle);
    handles_.push_back(before.open_again(7).value().handle);
  }
  std::vector<std::uint64_t> handles_;  // of 7, 8, 7
  const std::shared_ptr<OpenFile> same_ = std::make_shared<FakeFile>(100);
  const std::shared_ptr<OpenFile> other_ = std::make_shared<FakeFile>(100, true, 1);
};

TEST_F(TakenOverTest, WhatIsMadeAgainWithTheSameContentsGoesOn) {
  OpenTable table(&state_, kernel(), log_);
  EXPECT_FALSE(table.open_again(7));
  table.adopt(handles_[0], 7, same_);
  EXPECT_EQ(table.find(handles_[0]), same_);
  EXPECT_EQ(table.open_again(7).value().file, same_);
  // The compared file also serves another handle of the same file.
  table.adopt(handles_[2], 7, other_);
  EXPECT_EQ(table.find(handles_[2]), same_);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(TakenOverTest, WhatIsMadeAgainWithOtherContentsIsStaleUntilItIsClosed) {
  OpenTable table(&state_, kernel(), log_);
  EXPECT_EQ(code_of([&] { table.adopt(handles_[0], 7, other_); }), ErrorCode::stale);
  EXPECT_EQ(code_of([&] { table.check(7); }), ErrorCode::stale);
  EXPECT_EQ(code_of([&] { table.open_again(7); }), ErrorCode::stale);
  EXPECT_EQ(code_of([&] { table.open(7, other_, false); }), ErrorCode::stale);
  EXPECT_EQ(code_of([&] { table.adopt(handles_[2], 7, other_); }), ErrorCode::stale);
  EXPECT_EQ(table.find(handles_[0]), nullptr);
  const std::string log = log_.text();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, testing::HasSubstr("open it again (views/v/file-7)"));
  table.check(8);
  table.release(handles_[0], 7);
  table.release(handles_[2], 7);
  table.check(7);
  EXPECT_EQ(table.open(7, other_, false).file, other_);
}

TEST_F(TakenOverTest, ANewOpeningMustAgreeToo) {
  OpenTable table(&state_, kernel(), log_);
  EXPECT_EQ(code_of([&] { table.open(7, other_, true); }), ErrorCode::stale);
  EXPECT_EQ(table.open(8, same_, true).backing_id, 0);  // the kernel has it open without
  EXPECT_TRUE(backings_.empty());
}

TEST_F(TakenOverTest, ThatHoldsForTheDaemonAfterTheNextToo) {
  {
    OpenTable next(&state_, kernel(), log_);
    next.adopt(handles_[0], 7, same_);
  }
  OpenTable table(&state_, kernel(), log_);
  EXPECT_EQ(code_of([&] { table.adopt(handles_[0], 7, other_); }), ErrorCode::stale);
}

TEST_F(TakenOverTest, WhatHadNoRoomInTheStateIsStale) {
  OpenTable table(&state_, kernel(), log_);
  EXPECT_EQ(code_of([&] { table.adopt(99, 9, same_); }), ErrorCode::stale);
}

TEST_F(OpenTableTest, AnUnknownHandleTakesNothingAway) {
  OpenTable table(&state_, kernel(), log_);
  const auto opening = table.open(7, file_, true);
  table.release(opening.handle + 1, 7);
  table.release(opening.handle + 1, 8);
  EXPECT_EQ(table.find(opening.handle), file_);
  EXPECT_EQ(backings_, std::set{41});
}

}  // namespace open_table_test
}  // namespace batchfs

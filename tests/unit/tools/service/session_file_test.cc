#include "tools/service/session_file.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "engine/base/error.h"
#include "fs/session_state.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace session_file_test {

template <class Body>
ErrorCode error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

class SessionFileTest : public testing::Test {
 protected:
  /// Holds it like a reading process.
  int hold() const {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::flock(fd, LOCK_SH | LOCK_NB), 0);
    return fd;
  }
  const TemporaryDirectory directory;
  const std::string path = directory / "session";
};

TEST_F(SessionFileTest, TheNextServerContinuesWhatAnotherProcessHolds) {
  int reader = -1;
  {
    const SessionFile file(path);
    SessionState state(file.descriptor());
    const VersionSlots::Table versions = state.new_versions();
    versions.table->accept("a", 5);
    state.begin_reading("the store", 1, versions.slot);
    reader = hold();
  }
  {
    const SessionFile next(path);
    const auto known = SessionState(next.descriptor()).known_reading();
    EXPECT_EQ(known.identity, "the store");
    EXPECT_EQ(known.versions->find("a"), 5u);
    ::close(reader);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SessionFileTest, ItIsRemovedWhereNobodyHoldsIt) {
  { const SessionFile file(path); }
  EXPECT_FALSE(std::filesystem::exists(path));
  // Does not remove another file at the path.
  {
    const SessionFile file(path);
    std::filesystem::remove(path);
    std::ofstream(path) << "another";
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(SessionFileTest, AServerThatTakesNoReadersLeavesItBeforeItEnds) {
  SessionFile ending(path);
  ending.leave();
  EXPECT_FALSE(std::filesystem::exists(path));
  const SessionFile next(path);  // does not wait for the other's end
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(SessionFileTest, AServerThatLeavesItLeavesItToThoseThatHoldIt) {
  SessionFile ending(path);
  const int reader = hold();
  ending.leave();
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(::flock(reader, LOCK_EX | LOCK_NB), 0) << "the last holder may remove it";
  ::close(reader);
}

TEST_F(SessionFileTest, OneThatWasBegunAndNotFinishedIsBegunAgain) {
  std::ofstream(path).close();
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  const SessionFile file(path);
  EXPECT_EQ(SessionState(file.descriptor()).reading().number, 0u);
}

TEST_F(SessionFileTest, OneServerAndOneUserHaveIt) {
  {
    const SessionFile file(path);
    EXPECT_EQ(error_of([&] { const SessionFile other(path); }), ErrorCode::invalid_argument);
  }
  std::ofstream(path).close();
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  EXPECT_EQ(error_of([&] { const SessionFile file(path); }), ErrorCode::access_denied);
  std::filesystem::remove(path);
  std::filesystem::create_symlink(directory / "elsewhere", path);
  EXPECT_EQ(error_of([&] { const SessionFile file(path); }), ErrorCode::io);
  EXPECT_FALSE(std::filesystem::exists(directory / "elsewhere"));
}

TEST_F(SessionFileTest, WhatItMayTouchHasRoom) {
  const SessionFile file(path);
  struct stat at;
  ASSERT_EQ(::fstat(file.descriptor(), &at), 0);
  const auto blocks = at.st_blocks;
  EXPECT_LT(blocks * 512, 4 << 20) << "a small store takes little";
  const auto versions = SessionState(file.descriptor()).new_versions();
  for (int i = 0; i < 20'000; ++i) versions.table->accept(std::to_string(i), 1);
  ASSERT_EQ(::fstat(file.descriptor(), &at), 0);
  EXPECT_GE((at.st_blocks - blocks) * 512, 20'000 * 24) << "taken before it is touched";
}

}  // namespace session_file_test
}  // namespace batchfs

#include "fs/fuse/unmount.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs {
namespace unmount_test {

class UnmountTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "unmount-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
    if (::mount("none", path_.c_str(), "tmpfs", 0, nullptr) != 0)
      GTEST_SKIP() << "mounting takes CAP_SYS_ADMIN";
  }
  void TearDown() override {
    ::umount2(path_.c_str(), MNT_DETACH);
    std::filesystem::remove(path_);
  }
  std::filesystem::path path_;
};

TEST_F(UnmountTest, EndsAMount) {
  std::filesystem::create_directory(path_ / "inside");
  unmount(path_, false);
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(UnmountTest, WhatIsInUseStaysUnlessLazy) {
  std::filesystem::create_directory(path_ / "inside");
  const int user = ::open((path_ / "inside").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  try {
    unmount(path_, false);
    ADD_FAILURE() << "it was in use";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(error.why().find("--lazy"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::is_empty(path_));
  unmount(path_, true);
  EXPECT_TRUE(std::filesystem::is_empty(path_));
  ::close(user);
}

TEST_F(UnmountTest, AMountIsDeadWhenNobodyCanAnswerAnyMore) {
  EXPECT_FALSE(is_dead_mount(path_));
  EXPECT_FALSE(is_dead_mount(path_.string() + "-absent"));
  const int session = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (session < 0) GTEST_SKIP() << "/dev/fuse cannot be opened";
  const std::string options =
      "fd=" + std::to_string(session) + ",rootmode=40000,user_id=0,group_id=0";
  ASSERT_EQ(::mount("none", path_.c_str(), "fuse", 0, options.c_str()), 0);
  EXPECT_FALSE(is_dead_mount(path_));  // nobody answers, but the session is open
  ::close(session);
  EXPECT_TRUE(is_dead_mount(path_));
  unmount(path_, true);
  EXPECT_FALSE(is_dead_mount(path_));
}

TEST_F(UnmountTest, ALinkIsNotFollowed) {
  const std::filesystem::path link = path_.string() + "-link";
  std::filesystem::create_directory_symlink(path_, link);
  std::filesystem::create_directory(path_ / "inside");
  EXPECT_THROW(unmount(link, false), Error);
  EXPECT_FALSE(std::filesystem::is_empty(path_));
  std::filesystem::remove(link);
}

TEST(Unmount, WhatIsNoMountIsAnError) {
  EXPECT_THROW(unmount("/nothing/there", false), Error);
  EXPECT_THROW(unmount(testing::TempDir(), false), Error);
}

TEST(Unmount, ADescriptorWithoutASessionHasEnded) {
  const int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse < 0) GTEST_SKIP() << "there is no /dev/fuse";
  EXPECT_TRUE(has_session_ended(fuse));
  ::close(fuse);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_FALSE(has_session_ended(pipe[0]));
  for (const int end : pipe) ::close(end);
}

}  // namespace unmount_test
}  // namespace batchfs

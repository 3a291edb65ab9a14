#include "engine/store/local/file_owner.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace file_owner_test {

constexpr uid_t kOwner = 54321;

uid_t file_user() { return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))); }

std::vector<gid_t> groups() {
  std::vector<gid_t> all(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  all.resize(
      static_cast<std::size_t>(std::max(::getgroups(static_cast<int>(all.size()), all.data()), 0)));
  return all;
}

class FileOwnerTest : public testing::Test {
 protected:
  FileOwner owner_of(uid_t user) {
    EXPECT_EQ(::chown(directory_.path().c_str(), user, user), 0);
    const Descriptor opened(::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return FileOwner::of(opened.get());
  }

  TemporaryDirectory directory_;
};

TEST_F(FileOwnerTest, TheProcessItselfChangesNothing) {
  const FileOwner owner = owner_of(::geteuid());
  EXPECT_FALSE(owner.is_another());
  const uid_t before = file_user();
  const auto scope = owner.enter();
  EXPECT_EQ(file_user(), before);
}

TEST_F(FileOwnerTest, RootTakesTheOwnersIdentityForTheScope) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const FileOwner owner = owner_of(kOwner);
  ASSERT_TRUE(owner.is_another());
  const std::vector<gid_t> before = groups();
  EXPECT_EQ(file_user(), 0u);
  {
    const auto scope = owner.enter();
    EXPECT_EQ(file_user(), kOwner);
    EXPECT_TRUE(groups().empty());  // of a user that the system does not know
    EXPECT_LT(::open((directory_ / "new").c_str(), O_RDONLY | O_CLOEXEC), 0);
    EXPECT_EQ(errno, ENOENT);
  }
  EXPECT_EQ(file_user(), 0u);
  EXPECT_EQ(groups(), before);
}

TEST_F(FileOwnerTest, OtherThreadsKeepTheirs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const FileOwner owner = owner_of(kOwner);
  const std::vector<gid_t> before = groups();
  std::atomic<bool> stop = false, wrong = false;
  std::thread other([&] {
    while (!stop) wrong = wrong || file_user() != 0 || groups() != before;
  });
  for (int i = 0; i < 1000; ++i) {
    const auto scope = owner.enter();
    wrong = wrong || file_user() != kOwner;
  }
  stop = true;
  other.join();
  EXPECT_FALSE(wrong);
}

}  // namespace file_owner_test
}  // namespace batchfs

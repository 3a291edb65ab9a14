#include "gpu/handoff/listener.h"

#include <cerrno>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "engine/base/error.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace listener_test {

class Listening : public testing::Test {
 protected:
  Listening() : directory_(temporary_directory()) {}
  ~Listening() override {
    [[maybe_unused]] const int status = std::system(("rm -r " + directory_).c_str());
  }
  static bool exists(const std::string& path) {
    struct stat at;
    return ::lstat(path.c_str(), &at) == 0;
  }
  const std::string directory_;
};

TEST_F(Listening, ThePathIsTheUsersAloneAndGoesWithTheListener) {
  const std::string path = directory_ + "/s";
  {
    const Listener listener(path);
    struct stat at;
    ASSERT_EQ(::stat(path.c_str(), &at), 0);
    EXPECT_EQ(at.st_mode & 0777, 0600u);
    const int fd = connect_to(path);
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  EXPECT_FALSE(exists(path));
}

TEST_F(Listening, ConnectionsThatWereNotAcceptedAreReset) {
  const std::string path = directory_ + "/s";
  Listener listener(path);
  const int waiting = connect_to(path);
  ASSERT_GE(waiting, 0);
  listener.close();
  char byte;
  EXPECT_EQ(::recv(waiting, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_LT(connect_to(path), 0);
  ::close(waiting);
}

TEST_F(Listening, PathsOfAnyLength) {
  std::string path = directory_;
  for (int i = 0; i < 5; ++i) {
    path += "/" + std::string(50, 'd');
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  }
  path += "/s";
  const Listener listener(path);
  const int fd = connect_to(path);
  EXPECT_GE(fd, 0);
  ::close(fd);
  ASSERT_EQ(::symlink(path.c_str(), (directory_ + "/link").c_str()), 0);  // as in a mount
  const int through_link = connect_to(directory_ + "/link");
  EXPECT_GE(through_link, 0);
  ::close(through_link);
}

TEST_F(Listening, ASocketThatIsListenedToIsLeftAlone) {
  const std::string path = directory_ + "/s";
  const Listener listener(path);
  EXPECT_THROW(Listener{path}, Error);
  const int fd = connect_to(path);
  EXPECT_GE(fd, 0);
  ::close(fd);
}

TEST_F(Listening, ASocketThatNobodyListensToIsReplaced) {
  const std::string path = directory_ + "/s";
  const int stale = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address;
  ASSERT_TRUE(unix_address(path, -1, address));
  ASSERT_EQ(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(stale);
  const Listener listener(path);
  const int fd = connect_to(path);
  EXPECT_GE(fd, 0);
  ::close(fd);
}

TEST_F(Listening, OtherFilesAreNotTouched) {
  const std::string path = directory_ + "/file";
  std::ofstream(path) << "precious";
  EXPECT_THROW(Listener{path}, Error);
  EXPECT_TRUE(exists(path));
  EXPECT_THROW(Listener{directory_ + "/missing/s"}, Error);
}

TEST_F(Listening, TheRuntimeDirectoryIsPrivateAndSweptClean) {
  const char* before = ::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
  ASSERT_EQ(::mkdir((directory_ + "/batchfs").c_str(), 0700), 0);
  const std::string left = directory_ + "/batchfs/1-0.sock";
  const int stale = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address;
  ASSERT_TRUE(unix_address(left, -1, address));
  ASSERT_EQ(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(stale);
  {
    const Listener one = Listener::in_runtime_directory(), two = Listener::in_runtime_directory();
    EXPECT_NE(one.path(), two.path());
    EXPECT_THAT(one.path(), testing::StartsWith(directory_ + "/batchfs/"));
    EXPECT_FALSE(exists(left));
    EXPECT_TRUE(exists(one.path()));
  }
  // A directory that others can enter is passed over.
  ASSERT_EQ(::chmod((directory_ + "/batchfs").c_str(), 0755), 0);
  EXPECT_THAT(Listener::in_runtime_directory().path(),
              testing::Not(testing::StartsWith(directory_)));
  if (before != nullptr)
    ::setenv("XDG_RUNTIME_DIR", saved.c_str(), 1);
  else
    ::unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace listener_test
}  // namespace batchfs::handoff

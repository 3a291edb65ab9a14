#include "gpu/handoff/trust.h"

#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "engine/base/error.h"
#include "gpu/handoff/listener.h"
#include "gpu/reader/reader.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace trust_test {

using testing::AllOf;
using testing::HasSubstr;

class Trust : public testing::Test {
 protected:
  Trust() : directory_(temporary_directory()) {}
  ~Trust() override { std::filesystem::remove_all(directory_); }
  std::string make(const std::string& name, mode_t mode) const {
    const std::string path = directory_ + "/" + name;
    std::filesystem::create_directories(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  const std::string directory_;
};

/// The message of the Error with this code that `body` throws.
std::string refusal(ErrorCode code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(Trust, ADirectoryThatAllMayWriteToIsNamed) {
  EXPECT_EQ(changeable_directory(directory_ + "/s"), "")
      << "/tmp is sticky, and the entry in it ours";
  EXPECT_EQ(changeable_directory(make("a", 0755) + "/s"), "");
  EXPECT_EQ(changeable_directory(make("open", 0777) + "/s"), directory_ + "/open");
  EXPECT_EQ(changeable_directory(make("open/b/c", 0700) + "/s"), directory_ + "/open");
  EXPECT_EQ(changeable_directory(make("sticky", 01777) + "/s"), "")
      << "the entry is not there, and then ours to make";
  // A link is as trustworthy as its target.
  std::filesystem::create_symlink(directory_ + "/open/b", directory_ + "/link");
  EXPECT_EQ(changeable_directory(directory_ + "/link/c/s"), directory_ + "/open");
}

TEST_F(Trust, InAStickyDirectoryTheEntryMustBeOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string sticky = make("sticky", 01777), others = make("sticky/others", 0755),
                    roots = make("sticky/roots", 0755);
  ASSERT_EQ(::chown(others.c_str(), 65534, 65534), 0);
  EXPECT_EQ(changeable_directory(others + "/s"), sticky);
  EXPECT_EQ(changeable_directory(roots + "/s"), "");
}

TEST_F(Trust, NoSocketIsMadeWhereOthersCanReplaceIt) {
  const std::string open = make("open", 0777);
  EXPECT_THAT(
      refusal(ErrorCode::access_denied, [&] { Listener listener(open + "/s"); }),
      AllOf(HasSubstr("any user could replace the socket"), HasSubstr("chmod o-w '" + open + "'")));
}

TEST_F(Trust, AReaderDoesNotConnectWhereOthersCanReplaceTheSocket) {
  const std::string directory = make("d", 0700);
  const Listener listener(directory + "/s");
  ASSERT_EQ(::chmod(directory.c_str(), 0777), 0);
  EXPECT_THAT(
      refusal(ErrorCode::access_denied, [&] { reader::Reader::open({.place = directory + "/s"}); }),
      AllOf(HasSubstr("any user can replace the socket"),
            HasSubstr("chmod o-w '" + directory + "'")));
}

TEST_F(Trust, AReaderTakesNothingFromAnotherUsersServer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string directory = make("d", 0700);
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  ASSERT_EQ(::chown(directory.c_str(), 65534, 65534), 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const Listener listener(directory + "/s");
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(
      refusal(ErrorCode::access_denied, [&] { reader::Reader::open({.place = directory + "/s"}); }),
      HasSubstr(
          "the server runs as user 65534, and batches are taken from this user (0) and root only"));
  const int fd = connect_to(directory + "/s");
  EXPECT_FALSE(is_own_peer(fd, true));
  ::close(fd);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  for (const int end : ready) ::close(end);
}

TEST_F(Trust, OnesOwnServerIsTrusted) {
  const Listener listener(directory_ + "/s");
  const int fd = connect_to(directory_ + "/s");
  EXPECT_NO_THROW(require_own_server(fd, directory_ + "/s"));
  EXPECT_TRUE(is_own_peer(fd, false));
  ::close(fd);
}

}  // namespace trust_test
}  // namespace batchfs::handoff

#include "tools/service/takeover.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "tools/service/mounts.h"

namespace batchfs {
namespace takeover_test {

/// With a private runtime directory.
class Takeover : public testing::Test {
 protected:
  Takeover() {
    char name[] = "/tmp/batchfs-test-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
    top_ = name;
    const char* before = ::getenv("XDG_RUNTIME_DIR");
    before_ = before != nullptr ? before : "";
    ::setenv("XDG_RUNTIME_DIR", name, 1);
  }
  ~Takeover() override {
    if (before_.empty())
      ::unsetenv("XDG_RUNTIME_DIR");
    else
      ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    std::filesystem::remove_all(top_);
  }

  std::string path() const {
    return top_ + "/batchfs/mount-" + mounted_device("/proc").value() + ".takeover";
  }
  /// Connects to the supervisor of the mount at /proc; -1 if nobody listens.
  int connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().data(), path().size());
    const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return connection;
    ::close(connection);
    return -1;
  }

  std::string top_, before_;
};

TEST_F(Takeover, ASupervisorListensForItsSuccessor) {
  EXPECT_EQ(connect(), -1);
  const int listener = listen_for_successor("/proc");
  ASSERT_GE(listener, 0);
  EXPECT_EQ(accept_successor(listener), -1);  // without waiting
  const int successor = connect();
  ASSERT_GE(successor, 0);
  const int accepted = accept_successor(listener);
  EXPECT_GE(accepted, 0);
  EXPECT_EQ(::write(successor, kGo, sizeof kGo), static_cast<ssize_t>(sizeof kGo));
  char said[sizeof kGo];
  EXPECT_EQ(::read(accepted, said, sizeof said), static_cast<ssize_t>(sizeof said));
  EXPECT_STREQ(said, kGo);
  EXPECT_EQ(listen_for_successor("/proc"), -1);  // there is one
  for (const int fd : {successor, accepted}) ::close(fd);
  stop_listening(listener);
  EXPECT_EQ(connect(), -1);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Takeover, TheSocketLiesWhereNobodyElseGetsIn) {
  const int listener = listen_for_successor("/proc");
  ASSERT_GE(listener, 0);
  struct stat at;
  ASSERT_EQ(::stat((top_ + "/batchfs").c_str(), &at), 0);
  EXPECT_EQ(at.st_mode & 0777, 0700u);
  stop_listening(listener);
}

TEST_F(Takeover, ASocketThatAKilledSupervisorLeftIsReplaced) {
  const int killed = listen_for_successor("/proc");
  ASSERT_GE(killed, 0);
  ::close(killed);
  EXPECT_TRUE(std::filesystem::exists(path()));
  const int listener = listen_for_successor("/proc");
  EXPECT_GE(listener, 0);
  stop_listening(listener);
}

TEST_F(Takeover, WhatIsNotMountedHasNoSupervisor) {
  EXPECT_EQ(listen_for_successor("/proc/self"), -1);
  EXPECT_EQ(listen_for_successor("/nothing/there"), -1);
}

TEST_F(Takeover, OnlyABatchfsMountCanBeAsked) {
  for (const char* path : {"/proc", "/tmp/nothing-there", "/proc/self"}) {
    try {
      ask_for_session(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << path;
    }
  }
}

}  // namespace takeover_test
}  // namespace batchfs

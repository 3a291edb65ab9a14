#include "tools/takeover.h"

#include <cstddef>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "tools/mounts.h"

namespace batchfs {
namespace {

/// Connects to the supervisor of what is mounted at `path`; -1 when nobody listens.
int connect_to(const std::string& path) {
  const std::string name = "batchfs-mount-" + mounted_device(path).value();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), size) == 0) return connection;
  ::close(connection);
  return -1;
}

TEST(Takeover, ASupervisorListensForItsSuccessor) {
  EXPECT_EQ(connect_to("/proc"), -1);
  const int listener = listen_for_successor("/proc");
  ASSERT_GE(listener, 0);
  EXPECT_EQ(accept_successor(listener), -1);  // without waiting
  const int successor = connect_to("/proc");
  ASSERT_GE(successor, 0);
  const int accepted = accept_successor(listener);
  EXPECT_GE(accepted, 0);
  EXPECT_EQ(::write(successor, kGo, sizeof kGo), static_cast<ssize_t>(sizeof kGo));
  char said[sizeof kGo];
  EXPECT_EQ(::read(accepted, said, sizeof said), static_cast<ssize_t>(sizeof said));
  EXPECT_STREQ(said, kGo);
  EXPECT_EQ(listen_for_successor("/proc"), -1);  // there is one
  for (const int fd : {successor, accepted, listener}) ::close(fd);
  EXPECT_EQ(connect_to("/proc"), -1);  // nothing is left behind
}

TEST(Takeover, WhatIsNotMountedHasNoSupervisor) {
  EXPECT_EQ(listen_for_successor("/proc/self"), -1);
  EXPECT_EQ(listen_for_successor("/nothing/there"), -1);
}

TEST(Takeover, OnlyABatchfsMountCanBeAsked) {
  for (const char* path : {"/proc", "/tmp/nothing-there", "/proc/self"}) {
    try {
      ask_for_session(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << path;
    }
  }
}

}  // namespace
}  // namespace batchfs

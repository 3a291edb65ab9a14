#include "gpu/handoff/messages.h"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/handoff/protocol.h"

namespace batchfs::handoff {
namespace messages_test {

class Messages : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
  }
  void TearDown() override {
    for (const int fd : ends_)
      if (fd >= 0) ::close(fd);
  }
  static std::vector<std::byte> message(std::uint32_t size, std::uint32_t said) {
    std::vector<std::byte> bytes(size, std::byte{7});
    const Header header{said, MessageType::ended, kVersion};
    std::memcpy(bytes.data(), &header, std::min<std::size_t>(size, sizeof header));
    return bytes;
  }
  static int open_files() {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
  }
  int ends_[2] = {-1, -1};
};

TEST_F(Messages, ArriveWithTheirDescriptors) {
  int file[2];
  ASSERT_EQ(::pipe(file), 0);
  const std::vector<std::byte> sent = message(100, 100);
  ASSERT_TRUE(send_message(ends_[0], sent, file));
  const int before = open_files();
  {
    ReceivedMessage received;
    ASSERT_TRUE(receive_message(ends_[1], 100, received));
    EXPECT_EQ(received.bytes, sent);
    ASSERT_EQ(received.descriptors.size(), 2u);
    for (int i = 0; i < 2; ++i) {
      struct stat one, other;
      ASSERT_EQ(::fstat(file[i], &one), 0);
      ASSERT_EQ(::fstat(received.descriptors[static_cast<std::size_t>(i)].get(), &other), 0);
      EXPECT_EQ(one.st_ino, other.st_ino);
      EXPECT_NE(
          ::fcntl(received.descriptors[static_cast<std::size_t>(i)].get(), F_GETFD) & FD_CLOEXEC,
          0);
    }
  }
  EXPECT_EQ(open_files(), before) << "they go with the message";
  ::close(file[0]);
  ::close(file[1]);
}

TEST_F(Messages, OfAnotherLengthAreRefusedAndTheirDescriptorsClosed) {
  const int before = open_files();
  const int own[] = {ends_[0]};
  for (const auto& [size, said] : {std::pair<std::uint32_t, std::uint32_t>{100, 99},
                                   {100, 101},
                                   {100, 0},
                                   {4, 4},
                                   {101, 101}}) {
    ASSERT_TRUE(send_message(ends_[0], message(size, said), own));
    ReceivedMessage received;
    EXPECT_FALSE(receive_message(ends_[1], 100, received)) << size << " " << said;
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(Messages, TheEndIsTheEnd) {
  ::close(std::exchange(ends_[0], -1));
  ReceivedMessage received;
  EXPECT_FALSE(receive_message(ends_[1], 100, received));
  EXPECT_FALSE(send_message(ends_[1], message(100, 100)));  // and no SIGPIPE
}

TEST_F(Messages, WhatAPeerSaidLastArrivesThoughItLeftMessagesUnread) {
  ASSERT_TRUE(send_message(ends_[0], message(16, 16)));
  ASSERT_TRUE(send_message(ends_[1], message(24, 24)));
  ::close(std::exchange(ends_[1], -1));  // the next call on the other end fails with ECONNRESET
  ReceivedMessage received;
  ASSERT_TRUE(receive_message(ends_[0], 64, received));
  EXPECT_EQ(received.bytes.size(), 24u);
  ReceivedMessage none;
  EXPECT_FALSE(receive_message(ends_[0], 64, none));
}

TEST_F(Messages, SendingWaitsForRoom) {
  constexpr int kCount = 2000;
  std::thread sender([this] {
    for (int i = 0; i < kCount; ++i) EXPECT_TRUE(send_message(ends_[0], message(1000, 1000)));
  });
  int got = 0;
  for (; got < kCount; ++got) {
    ReceivedMessage received;
    if (!receive_message(ends_[1], 1000, received)) break;
  }
  sender.join();
  EXPECT_EQ(got, kCount);
}

}  // namespace messages_test
}  // namespace batchfs::handoff

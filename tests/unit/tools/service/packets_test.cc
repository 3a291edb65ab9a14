#include "tools/service/packets.h"

#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace batchfs {
namespace packets_test {

class Packets : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
  }
  void TearDown() override {
    for (const int fd : ends_)
      if (fd >= 0) ::close(fd);
  }
  int ends_[2] = {-1, -1};
};

TEST_F(Packets, ArriveWholeAndInOrder) {
  EXPECT_FALSE(receive_packet(ends_[1])) << "there is none now";
  ASSERT_TRUE(send_packet(ends_[0], "one"));
  ASSERT_TRUE(send_packet(ends_[0], std::string("t\0wo", 4)));
  EXPECT_EQ(receive_packet(ends_[1])->text, "one");
  EXPECT_EQ(receive_packet(ends_[1], true)->text, std::string("t\0wo", 4));
  EXPECT_FALSE(receive_packet(ends_[1]));
}

TEST_F(Packets, BringDescriptors) {
  int file[2];
  ASSERT_EQ(::pipe(file), 0);
  ASSERT_TRUE(send_packet(ends_[0], "two", {file[0], file[1]}));
  const auto packet = receive_packet(ends_[1]);
  ASSERT_EQ(packet->descriptors.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    struct stat sent, got;
    ASSERT_EQ(::fstat(file[i], &sent), 0);
    ASSERT_EQ(::fstat(packet->descriptors[i].get(), &got), 0);
    EXPECT_EQ(sent.st_ino, got.st_ino);
    EXPECT_NE(::fcntl(packet->descriptors[i].get(), F_GETFD) & FD_CLOEXEC, 0)
        << "not for programs that this one starts";
    ::close(file[i]);
  }
}

TEST_F(Packets, ToAPeerThatIsGone) {
  ::close(std::exchange(ends_[0], -1));
  EXPECT_FALSE(send_packet(ends_[1], "x"));  // and no SIGPIPE
  EXPECT_FALSE(receive_packet(ends_[1]));
  EXPECT_FALSE(receive_packet(ends_[1], true));
}

}  // namespace packets_test
}  // namespace batchfs

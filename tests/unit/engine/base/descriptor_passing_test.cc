#include "engine/base/descriptor_passing.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace batchfs {
namespace descriptor_passing_test {

using Cut = PassedMessage::Cut;

int open_files() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

class DescriptorPassing : public testing::Test {
 protected:
  DescriptorPassing() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    one_ = Descriptor(ends[0]);
    other_ = Descriptor(ends[1]);
  }

  ssize_t send(std::string_view text, std::size_t descriptors) {
    const std::vector<int> fds(descriptors, one_.get());
    return send_passing(one_.get(), std::as_bytes(std::span(text)), fds, MSG_DONTWAIT);
  }
  PassedMessage receive(std::size_t max_descriptors = kMaxPassedDescriptors) {
    return receive_passed(other_.get(), buffer_, max_descriptors, MSG_DONTWAIT);
  }
  std::string text(const PassedMessage& message) const {
    return {reinterpret_cast<const char*>(buffer_.data()), static_cast<std::size_t>(message.size)};
  }

  Descriptor one_, other_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(64);
};

TEST_F(DescriptorPassing, AMessageBringsItsBytesAndDescriptors) {
  const int before = open_files();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kMaxPassedDescriptors}) {
    ASSERT_EQ(send("hello", count), 5);
    const PassedMessage message = receive();
    EXPECT_EQ(text(message), "hello");
    EXPECT_EQ(message.cut, Cut::none);
    ASSERT_EQ(message.descriptors.size(), count);
    struct stat sent, got;
    ASSERT_EQ(::fstat(one_.get(), &sent), 0);
    for (const Descriptor& descriptor : message.descriptors) {
      ASSERT_EQ(::fstat(descriptor.get(), &got), 0);
      EXPECT_EQ(got.st_ino, sent.st_ino);
      EXPECT_NE(::fcntl(descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
    }
  }
  EXPECT_EQ(open_files(), before) << "they close with their owner";
}

TEST_F(DescriptorPassing, TooManyDescriptorsAreNotSent) {
  EXPECT_EQ(send("x", kMaxPassedDescriptors + 1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(DescriptorPassing, AMessageWithMoreDescriptorsThanAllowedIsCutAndKeepsNone) {
  const int before = open_files();
  for (std::size_t allowed = 0; allowed < 4; ++allowed) {
    ASSERT_EQ(send("x", allowed + 1), 1);
    const PassedMessage message = receive(allowed);
    EXPECT_EQ(message.size, 1);
    EXPECT_EQ(message.cut, Cut::descriptors) << allowed;
    EXPECT_TRUE(message.descriptors.empty());
    EXPECT_EQ(open_files(), before);
  }
}

TEST_F(DescriptorPassing, WithoutRoomForFilesAMessageIsCut) {
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_EQ(send("x", 3), 1);
  const int next = ::dup(one_.get());
  ::close(next);
  const rlimit small{static_cast<rlim_t>(next) + 1, limit.rlim_max};  // room for one
  const int before = open_files();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  const PassedMessage message = receive();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(message.cut, Cut::descriptors);
  EXPECT_TRUE(message.descriptors.empty());
  EXPECT_EQ(open_files(), before);
}

TEST_F(DescriptorPassing, AMessageThatIsTooLongIsCut) {
  const int before = open_files();
  ASSERT_EQ(send(std::string(100, 'x'), 1), 100);
  const PassedMessage message = receive();
  EXPECT_EQ(message.size, 64);
  EXPECT_EQ(message.cut, Cut::bytes);
  EXPECT_TRUE(message.descriptors.empty());
  EXPECT_EQ(open_files(), before);
}

TEST_F(DescriptorPassing, ErrorsAreThoseOfTheSystem) {
  EXPECT_EQ(receive().size, -1);
  EXPECT_EQ(errno, EAGAIN);
  other_ = Descriptor();
  EXPECT_EQ(send("x", 0), -1);  // and no SIGPIPE
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(DescriptorPassing, TheLastMessagesOfAPeerThatLeftMessagesUnreadArrive) {
  const std::string_view unread = "unread";
  ASSERT_GT(send_passing(other_.get(), std::as_bytes(std::span(unread))), 0);
  ASSERT_EQ(send("last", 0), 4);
  one_ = Descriptor();
  EXPECT_EQ(text(receive()), "last");
  EXPECT_EQ(receive().size, 0);
}

}  // namespace descriptor_passing_test
}  // namespace batchfs

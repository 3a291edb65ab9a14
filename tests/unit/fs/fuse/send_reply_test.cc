#include "fs/fuse/send_reply.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "fs/fuse/fuse_abi.h"

namespace batchfs {
namespace send_reply_test {

/// Takes messages whole or not at all, as the kernel takes answers.
struct Session {
  Session() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0); }
  ~Session() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ssize_t send(std::uint64_t unique, std::size_t bytes) {
    std::vector<char> data(bytes, 'x');
    fuse_abi::OutHeader header{static_cast<std::uint32_t>(sizeof header + bytes), 0, unique};
    const iovec parts[] = {{&header, sizeof header}, {data.data(), bytes}};
    return send_reply(ends[0], parts, 2, log);
  }
  /// The header of the next answer, and how long it is.
  std::pair<fuse_abi::OutHeader, ssize_t> received() {
    std::array<std::byte, 256> bytes;
    const ssize_t size = ::recv(ends[1], bytes.data(), bytes.size(), 0);
    fuse_abi::OutHeader header{};
    if (size >= static_cast<ssize_t>(sizeof header))
      std::memcpy(&header, bytes.data(), sizeof header);
    return {header, size};
  }
  int ends[2];
  Log log;
};

constexpr std::size_t kTooMuch = 8 << 20;  // for one message of the socket

TEST(SendReply, AnswersArriveWhole) {
  Session session;
  EXPECT_EQ(session.send(7, 5), 21);
  const auto [header, size] = session.received();
  EXPECT_EQ(size, 21);
  EXPECT_EQ(header.unique, 7u);
  EXPECT_EQ(header.error, 0);
}

TEST(SendReply, AnAnswerThatIsNotTakenBecomesAnError) {
  Session session;
  EXPECT_EQ(session.send(7, kTooMuch), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  const auto [header, size] = session.received();
  EXPECT_EQ(size, static_cast<ssize_t>(sizeof header));
  EXPECT_EQ(header.unique, 7u);
  EXPECT_EQ(header.error, -EIO);
}

TEST(SendReply, NotificationsHaveNoReader) {
  Session session;
  EXPECT_EQ(session.send(0, kTooMuch), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  EXPECT_EQ(session.received().second, -1);
}

TEST(SendReply, WhereNothingIsTakenTheProcessEnds) {
  Session session;
  ::shutdown(session.ends[0], SHUT_WR);
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EXIT(session.send(7, 5), testing::ExitedWithCode(1), "");
}

}  // namespace send_reply_test
}  // namespace batchfs

#include "gpu/handoff/outbox.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "engine/base/descriptor.h"

namespace batchfs::handoff {
namespace outbox_test {

struct Sockets {
  Sockets() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    ours = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
  }
  /// The next message's first byte; -1 when there is none.
  int next() const {
    std::array<std::byte, 4096> buffer;
    return ::recv(theirs.get(), buffer.data(), buffer.size(), 0) > 0
               ? std::to_integer<int>(buffer[0])
               : -1;
  }
  Descriptor ours, theirs;
};

Outgoing message(int first) {
  return {std::vector<std::byte>(4096, std::byte(first)), {}, nullptr};
}

TEST(Outbox, SendsInOrder) {
  const Sockets sockets;
  Outbox outbox(sockets.ours.get());
  for (const int n : {1, 2, 3}) outbox.add(message(n));
  EXPECT_EQ(sockets.next(), -1) << "before flush()";
  EXPECT_TRUE(outbox.flush());
  EXPECT_TRUE(outbox.empty());
  for (const int n : {1, 2, 3}) EXPECT_EQ(sockets.next(), n);
}

TEST(Outbox, KeepsWhatTheSocketDoesNotTake) {
  const Sockets sockets;
  Outbox outbox(sockets.ours.get());
  int added = 0;
  while (!outbox.full()) {
    ASSERT_LT(added, 100'000);
    outbox.add(message(added++ % 100));
    ASSERT_TRUE(outbox.flush());
  }
  EXPECT_FALSE(outbox.short_of_descriptors());
  int taken = 0;
  while (!outbox.empty()) {
    for (int first = sockets.next(); first != -1; first = sockets.next())
      EXPECT_EQ(first, taken++ % 100);
    ASSERT_TRUE(outbox.flush());
  }
  for (int first = sockets.next(); first != -1; first = sockets.next())
    EXPECT_EQ(first, taken++ % 100);
  EXPECT_EQ(taken, added);
}

TEST(Outbox, WhatIsSentIsNotHeldAnyLonger) {
  const Sockets sockets;
  Outbox outbox(sockets.ours.get());
  const auto held = std::make_shared<int>(1);
  Outgoing one = message(1);
  one.held = held;
  outbox.add(std::move(one));
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_TRUE(outbox.flush());
  EXPECT_EQ(held.use_count(), 1);
  outbox.add(message(2));
  outbox.clear();
  EXPECT_TRUE(outbox.flush());
  EXPECT_EQ(sockets.next(), 1);
  EXPECT_EQ(sockets.next(), -1) << "what was dropped";
}

TEST(Outbox, SaysThatTheReaderIsGone) {
  Sockets sockets;
  Outbox outbox(sockets.ours.get());
  sockets.theirs = Descriptor();
  outbox.add(message(1));
  EXPECT_FALSE(outbox.flush());
}

}  // namespace outbox_test
}  // namespace batchfs::handoff

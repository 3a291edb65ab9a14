#include "gpu/handoff/socket_watcher.h"

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "tests/unit/eventually.h"

namespace batchfs::handoff {
namespace socket_watcher_test {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    here = Descriptor(ends[0]);
    there = Descriptor(ends[1]);
  }
  void send() const { EXPECT_EQ(::send(there.get(), "x", 1, 0), 1); }
  /// Takes a message; false at the end.
  bool receive() const {
    char byte = 0;
    return ::recv(here.get(), &byte, 1, MSG_DONTWAIT) == 1;
  }
  Descriptor here, there;
};

TEST(SocketWatcher, EachMessageOfEachSocketIsReported) {
  SocketWatcher watcher;
  std::vector<std::unique_ptr<Pair>> pairs;
  std::array<std::atomic<int>, 8> messages{};
  for (std::atomic<int>& count : messages) {
    const Pair& pair = *pairs.emplace_back(std::make_unique<Pair>());
    watcher.add(pair.here.get(), [&pair, &count] {
      count += pair.receive();
      return true;
    });
  }
  for (int i = 0; i < 10; ++i)
    for (const auto& pair : pairs) pair->send();
  for (const std::atomic<int>& count : messages)
    EXPECT_TRUE(eventually([&] { return count == 10; }));
  for (const auto& pair : pairs) watcher.remove(pair->here.get());
}

TEST(SocketWatcher, TheEndIsReportedOnceToAFunctionThatIsDone) {
  SocketWatcher watcher;
  Pair ended, other;
  std::atomic<int> calls{0}, messages{0};
  watcher.add(ended.here.get(), [&] {
    ++calls;
    return ended.receive();
  });
  watcher.add(other.here.get(), [&] {
    messages += other.receive();
    return true;
  });
  ended.there = Descriptor();
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
  for (int i = 0; i < 3; ++i) other.send();
  EXPECT_TRUE(eventually([&] { return messages == 3; }));
  EXPECT_EQ(calls, 1);
  for (const Pair* pair : {&ended, &other}) watcher.remove(pair->here.get());
}

TEST(SocketWatcher, RemovingWaitsForTheFunctionThatRuns) {
  SocketWatcher watcher;
  Pair pair;
  std::promise<void> running, hold;
  std::atomic<bool> ended{false};
  watcher.add(pair.here.get(), [&] {
    pair.receive();
    running.set_value();
    hold.get_future().wait();
    ended = true;
    return true;
  });
  pair.send();
  running.get_future().wait();
  std::thread releasing([&] { hold.set_value(); });
  watcher.remove(pair.here.get());
  EXPECT_TRUE(ended);
  releasing.join();
  pair.send();  // is not reported: the function would set its promise again
}

}  // namespace socket_watcher_test
}  // namespace batchfs::handoff

// Resources that the server keeps for others when one reader takes all it can, or is silent.

#include "gpu/handoff/server.h"

#include <csignal>
#include <memory>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace server_limits_test {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kView =
    R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "none"}})";

TEST(HandoffServerLimits, WhoSaysNothingIsSentAway) {
  Served served({kView}, 64 << 20, {.greeting_time = 50ms});
  RawClient silent(served.server->path());
  EXPECT_THAT(silent.refused(), HasSubstr("did not say Hello"));
}

TEST(HandoffServerLimits, ReadersAreLimited) {
  Served served({kView}, 64 << 20, {.most_readers = 2});
  RawClient one(served.server->path()), two(served.server->path());
  one.hello();
  two.hello();
  one.expect(MessageType::welcome);
  two.expect(MessageType::welcome);
  RawClient three(served.server->path());
  EXPECT_THAT(three.refused(), HasSubstr("2 readers already"));
  one.close();
  EXPECT_TRUE(eventually([&] { return served.server->statistics().readers == 1; }));
  RawClient four(served.server->path());
  four.hello();
  four.expect(MessageType::welcome);
}

/// Holds batches by number, on `connections` connections, until one fails; then stops. Reports
/// their number over `ready`.
[[noreturn]] void hold_all(const std::string& path, int connections, int ready) {
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<Received> kept;
  for (int i = 0; i < connections; ++i) {
    clients.push_back(std::make_unique<RawClient>(path));
    clients.back()->hello();
    clients.back()->expect(MessageType::welcome);
  }
  for (int n = 0; n < 100; ++n) {
    RawClient& client = *clients[static_cast<std::size_t>(n % connections)];
    client.get(static_cast<std::uint64_t>(n + 1), n % 10, n / 10);
    kept.push_back(*client.receive());
    if (kept.back().type() != MessageType::batch) break;
  }
  const auto held = static_cast<unsigned char>(kept.size() - 1);
  [[maybe_unused]] const ssize_t written = ::write(ready, &held, 1);
  ::raise(SIGSTOP);
  ::_exit(0);
}

TEST(HandoffServerLimits, AProcessThatHoldsAllItCanAndStopsLeavesBatchesForOthers) {
  for (const int connections : {1, 4}) {
    // 96 bytes a batch.
    Served served(
        {R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "none"}, "epochs": 20})"},
        2000);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t stopped = ::fork();
    if (stopped == 0) hold_all(served.server->path(), connections, ready[1]);
    unsigned char held = 0;
    ASSERT_EQ(::read(ready[0], &held, 1), 1);
    EXPECT_GE(held, 8) << connections;
    EXPECT_LE(held, 15) << connections;
    int status = 0;
    ASSERT_EQ(::waitpid(stopped, &status, WUNTRACED), stopped);
    ASSERT_TRUE(WIFSTOPPED(status));
    RawClient other(served.server->path());
    other.hello();
    other.expect(MessageType::welcome);
    other.start(0, 1, 10);
    for (int n = 0; n < 10; ++n) {
      const Received batch = other.expect(MessageType::batch);
      EXPECT_EQ(values_of(batch)[0], first_value(4 * n));
      other.release(batch.as<BatchMessage>().lease);
    }
    EXPECT_TRUE(eventually([&] { return served.server->statistics().leases == held; }))
        << "of the one that is stopped";
    ::kill(stopped, SIGKILL);
    ::waitpid(stopped, nullptr, 0);
    EXPECT_TRUE(eventually([&] { return served.server->statistics().leases == 0; }));
    for (const int fd : ready) ::close(fd);
  }
}

TEST(HandoffServerLimits, AProcessGetsHalfOfTheConnections) {
  Served served({kView}, 64 << 20, {.most_readers = 6});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(served.server->path()));
    clients.back()->hello();
    clients.back()->expect(MessageType::welcome);
  }
  EXPECT_THAT(RawClient(served.server->path()).refused(), HasSubstr("has 3 connections already"));
  const pid_t other = ::fork();
  if (other == 0) {
    RawClient client(served.server->path());
    client.hello();
    const auto answer = client.receive();
    ::_exit(answer && answer->type() == MessageType::welcome ? 0 : 1);
  }
  int status = 1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(HandoffServerLimits, AReaderThatTakesNothingBlocksNobody) {
  Served served({kView});
  RawClient deaf(served.server->path());
  deaf.hello();
  deaf.expect(MessageType::welcome);
  // Sends requests without end and never reads: the server stops listening, and stops buffering for
  // it.
  for (int i = 0; i < 200'000; ++i) {
    GetMessage get{{sizeof get, MessageType::get, kVersion}, 1, 0, 99};
    if (::send(deaf.fd(), &get, sizeof get, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    ASSERT_LT(i, 199'999) << "the server takes everything";
  }
  RawClient other(served.server->path());
  other.hello();
  other.expect(MessageType::welcome);
  other.start(0, 1, 10);
  for (int i = 0; i < 10; ++i)
    other.release(other.expect(MessageType::batch).as<BatchMessage>().lease);
  other.expect(MessageType::end);
  // When it reads again, it gets its answers.
  EXPECT_EQ(deaf.expect(MessageType::failed).as<FailedMessage>().request, 1u);
}

}  // namespace server_limits_test
}  // namespace batchfs::handoff

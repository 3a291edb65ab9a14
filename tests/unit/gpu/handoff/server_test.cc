#include "gpu/handoff/server.h"

#include <atomic>
#include <cerrno>
#include <future>

#include <sys/resource.h>
#include <sys/wait.h>

#include <gmock/gmock.h>

#include "engine/base/json.h"
#include "gpu/handoff/connect.h"
#include "tests/unit/descriptor_attacks.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace server_test {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kView =
    R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "none"}})";

TEST(HandoffServer, SaysWhatAViewHolds) {
  Served served({kView});
  RawClient client(served.server->path());
  client.hello("v");
  const Received received = client.expect(MessageType::welcome);
  const auto welcome = received.as<WelcomeMessage>();
  EXPECT_EQ(welcome.header.version, kVersion);
  EXPECT_EQ(welcome.mode, Mode::shm);
  EXPECT_EQ(welcome.samples, 40);
  EXPECT_EQ(welcome.batch_size, 4);
  EXPECT_EQ(welcome.batches, 10);
  EXPECT_EQ(welcome.tensor_count, 1u);
  ASSERT_EQ(received.descriptors.size(), 1u);
  std::string texts(welcome.schema_length + welcome.view_length, '\0');
  ASSERT_EQ(::pread(received.descriptors[0].get(), texts.data(), texts.size(), 0),
            static_cast<ssize_t>(texts.size()));
  EXPECT_EQ(parse_json(texts.substr(0, welcome.schema_length), "").at("batches"), 10);
  EXPECT_EQ(parse_json(texts.substr(welcome.schema_length), "").at("batch").at("remainder"),
            "keep");
}

TEST(HandoffServer, KnowsEveryRuleForRemainders) {
  for (const auto& [name, rule] :
       {std::pair("keep", Remainder::keep), std::pair("drop", Remainder::drop),
        std::pair("pad", Remainder::pad)}) {
    Served served({R"({"window": {"time": 1}, "batch": {"size": 7, "remainder": ")" +
                   std::string(name) + "\"}}"});
    RawClient client(served.server->path());
    client.hello();
    EXPECT_EQ(client.expect(MessageType::welcome).as<WelcomeMessage>().remainder,
              static_cast<std::uint32_t>(rule))
        << name;
  }
}

TEST(HandoffServer, StreamsBatchesInOrderWithTheirMemory) {
  Served served({kView});
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.start(1, 3, 3);  // 1, 4, 7
  for (const std::int64_t number : {1, 4, 7}) {
    const Received batch = client.expect(MessageType::batch);
    const auto message = batch.as<BatchMessage>();
    EXPECT_EQ(message.epoch, 0);
    EXPECT_EQ(message.batch, number);
    EXPECT_EQ(message.samples, 4);
    EXPECT_EQ(message.stream, 1u);
    ASSERT_EQ(message.dim_count, 3u);
    // The number and the start of four samples, one after the other, after a record of eight bytes.
    const std::size_t windows = batch.bytes.size() - 2 * 4 * 8;
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(batch.as<std::int64_t>(windows + 8 * i),
                4 * number + static_cast<std::int64_t>(i % 4));
    const std::size_t dims = windows - sizeof(WindowsRecord) - 3 * 8;
    EXPECT_EQ(batch.as<std::int64_t>(dims), 4);  // sample, time, x
    EXPECT_EQ(batch.as<std::int64_t>(dims + 8), 1);
    EXPECT_EQ(batch.as<std::int64_t>(dims + 16), 6);
    const auto values = values_of(batch);
    ASSERT_EQ(values.size(), 24u);
    for (std::size_t row = 0; row < 4; ++row)
      EXPECT_EQ(values[6 * row], first_value(4 * number + static_cast<std::int64_t>(row)));
    client.release(message.lease);
  }
  EXPECT_EQ(client.expect(MessageType::end).as<EndMessage>().stream, 1u);
}

TEST(HandoffServer, NoDescriptorThatAReaderGetsCanChangeAnything) {
  // Small batches, and batches in huge pages if this process may use them.
  for (const std::int64_t width : {6, 200'000}) {
    Served served({kView}, 64 << 20, {}, FakeData{10, 4, width});
    RawClient client(served.server->path());
    client.hello();
    const Received welcome = client.expect(MessageType::welcome);
    client.get(1, 0);
    const Received batch = client.expect(MessageType::batch);
    for (const Received* received : {&welcome, &batch}) {
      ASSERT_EQ(received->descriptors.size(), 1u);
      EXPECT_EQ(attacks_that_work(received->descriptors[0].get()), "");
    }
    EXPECT_EQ(values_of(batch)[0], first_value(0));
  }
}

TEST(HandoffServer, SaysOnceThatNobodyCame) {
  std::atomic<int> said = 0;
  Served served({kView}, 64 << 20, {.on_unused = [&] { ++said; }, .first_reader_time = 50ms});
  EXPECT_TRUE(eventually([&] { return said == 1; }));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(said, 1);
}

TEST(HandoffServer, AReaderThatLeavesWithItsHelloWasOne) {
  std::atomic<int> said = 0;
  Served served({kView}, 64 << 20, {.on_unused = [&] { ++said; }, .first_reader_time = 60s});
  {
    RawClient client(served.server->path());
    client.hello();
  }
  EXPECT_TRUE(eventually([&] { return said == 1; }));
}

TEST(HandoffServer, TakesNoConnectionOnceItIsUnused) {
  std::string path;
  std::promise<std::pair<int, int>> late;
  const auto end = [&] {  // the thread that accepts connections
    const int socket = connect_to(path);
    late.set_value({socket, errno});
  };
  Served served({kView}, 64 << 20, {.on_unused = end, .first_reader_time = 60s});
  path = served.server->path();
  {
    RawClient client(path);
    client.hello();
  }
  EXPECT_EQ(late.get_future().get(), std::pair(-1, ENOENT));
}

TEST(HandoffServer, IsUsedUntilItsLastReaderLeaves) {
  std::atomic<int> said = 0;
  Served served({kView}, 64 << 20, {.on_unused = [&] { ++said; }, .first_reader_time = 60s});
  // A connection that is silent and leaves is not a reader.
  { const RawClient looks(served.server->path()); }
  auto first = std::make_unique<RawClient>(served.server->path());
  first->hello();
  first->expect(MessageType::welcome);
  auto second = std::make_unique<RawClient>(served.server->path());
  second->hello();
  second->expect(MessageType::welcome);
  first = nullptr;
  EXPECT_TRUE(eventually([&] { return served.server->statistics().readers == 1; }));
  EXPECT_EQ(said, 0);
  second = nullptr;
  EXPECT_TRUE(eventually([&] { return said == 1; }));
}

TEST(HandoffServer, ReadersOfOneBatchShareItsMemory) {
  Served served({kView});
  std::vector<std::unique_ptr<RawClient>> clients;
  std::set<ino_t> inodes;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(served.server->path()));
    clients.back()->hello();
    clients.back()->expect(MessageType::welcome);
    clients.back()->get(1, 3);
    struct stat at;
    ASSERT_EQ(::fstat(clients.back()->expect(MessageType::batch).descriptors.at(0).get(), &at), 0);
    inodes.insert(at.st_ino);
  }
  EXPECT_EQ(inodes.size(), 1u);
  EXPECT_TRUE(eventually([&] { return served.server->statistics().leases == 8; }));
}

TEST(HandoffServer, AStreamStopsAtItsDepth) {
  Served served({kView});
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.start(0, 1, 10, 3);
  std::vector<std::uint64_t> leases;
  for (int i = 0; i < 3; ++i)
    leases.push_back(client.expect(MessageType::batch).as<BatchMessage>().lease);
  EXPECT_FALSE(client.receive(100).has_value());
  client.release(leases[1]);
  EXPECT_EQ(client.expect(MessageType::batch).as<BatchMessage>().batch, 3);
  // A reader that holds all its batches and asks for another gets it.
  client.send(WantMessage{{}, 1, 4, 3, 0}, MessageType::want);
  EXPECT_EQ(client.expect(MessageType::batch).as<BatchMessage>().batch, 4);
  EXPECT_FALSE(client.receive(100).has_value());
}

TEST(HandoffServer, AReaderThatHoldsTooMuchIsTold) {
  // 96 bytes a batch, of a memory of 500.
  Served served({kView}, 500);
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.start(0, 1, 10, 2);
  int held = 0;
  std::optional<Received> received;
  for (;; ++held) {
    client.send(WantMessage{{}, 1, static_cast<std::uint64_t>(held), 1, 0}, MessageType::want);
    received = client.receive();
    ASSERT_TRUE(received.has_value());
    if (received->type() != MessageType::batch) break;
    ASSERT_LE(held, 10);
  }
  ASSERT_EQ(received->type(), MessageType::failed);
  EXPECT_EQ(held, 2) << "half of it is for others";
  EXPECT_EQ(received->as<FailedMessage>().code, static_cast<std::uint32_t>(ErrorCode::no_memory));
  EXPECT_THAT(received->text(sizeof(FailedMessage)), HasSubstr("release earlier batches"));
  client.get(7, 9);
  EXPECT_EQ(client.expect(MessageType::failed).as<FailedMessage>().request, 7u);
}

TEST(HandoffServer, StartingAgainTakesTheEarlierStreamsPlace) {
  Served served({kView});
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.start(0, 1, 10, 2, 0, 1);
  client.start(5, 1, 2, 8, 3, 2);
  std::vector<std::int64_t> numbers;
  for (;;) {
    const auto received = client.receive();
    ASSERT_TRUE(received.has_value());
    if (received->type() == MessageType::end) break;
    const auto message = received->as<BatchMessage>();
    client.release(message.lease);
    if (message.stream != 2) continue;
    EXPECT_EQ(message.epoch, 3);
    numbers.push_back(message.batch);
  }
  EXPECT_THAT(numbers, testing::ElementsAre(5, 6));
  EXPECT_TRUE(eventually([&] { return served.server->statistics().bytes == 0; }));
}

TEST(HandoffServer, ABatchThatFailsLeavesTheOthers) {
  Served served({kView});
  served.data.store->failing = 2;
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.start(1, 1, 3, 1);
  client.release(client.expect(MessageType::batch).as<BatchMessage>().lease);
  const Received failed = client.expect(MessageType::failed);
  EXPECT_EQ(failed.as<FailedMessage>().batch, 2);
  EXPECT_EQ(failed.as<FailedMessage>().code, static_cast<std::uint32_t>(ErrorCode::io));
  EXPECT_THAT(failed.text(sizeof(FailedMessage)), HasSubstr("the disk is on fire"));
  client.release(failed.as<FailedMessage>().lease);
  EXPECT_EQ(client.expect(MessageType::batch).as<BatchMessage>().batch, 3);
  client.expect(MessageType::end);
  client.get(9, 2);
  EXPECT_EQ(client.expect(MessageType::failed).as<FailedMessage>().request, 9u);
}

TEST(HandoffServer, PaddedRanksHaveBatchesBehindTheLast) {
  Served served(
      {R"({"window": {"time": 1}, "batch": {"size": 4, "remainder": "pad"}, "order": {"shuffle": "none"}})"});
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.get(1, 10);
  EXPECT_EQ(values_of(client.expect(MessageType::batch))[0], first_value(0));
  Served kept({kView});
  RawClient other(kept.server->path());
  other.hello();
  other.expect(MessageType::welcome);
  other.get(1, 10);
  EXPECT_EQ(other.expect(MessageType::failed).as<FailedMessage>().code,
            static_cast<std::uint32_t>(ErrorCode::not_found));
}

TEST(HandoffServer, RefusesWhatItDoesNotHave) {
  Served served(
      {R"({"name": "a", "window": {"time": 1}})", R"({"name": "b", "window": {"time": 1}})"});
  const auto answer = [&](const std::string& view, std::int64_t rank, std::int64_t world) {
    RawClient client(served.server->path());
    client.hello(view, rank, world);
    return client.refused();
  };
  EXPECT_THAT(answer("c", 0, 1), HasSubstr("no view 'c'"));
  EXPECT_THAT(answer("", 0, 1), HasSubstr("say which view: there are a, b"));
  EXPECT_THAT(answer("a", 4, 4), HasSubstr("no rank 4 of 4"));
  EXPECT_THAT(answer("a", -1, 4), HasSubstr("no rank"));
  EXPECT_THAT(answer("a", 0, 1 << 20), HasSubstr("no rank"));
  RawClient device(served.server->path());
  HelloMessage hello{};
  hello.mode = Mode::server;
  hello.kinds = bit(MemoryKind::host);
  hello.world = 1;
  hello.name_length = 1;
  hello.name[0] = 'a';
  device.send(hello, MessageType::hello);
  EXPECT_THAT(device.refused(), HasSubstr("mode"));
}

TEST(HandoffServer, ModeServerOnAGpuWithoutAKernelIsRefusedWithTheReason) {
  const std::array<std::uint8_t, 16> uuid{1, 2, 3};
  Served served({kView}, 64 << 20,
                {.unsupported_gpus = {{uuid, "not supported by this build: x"}}});
  RawClient device(served.server->path());
  HelloMessage hello{};
  hello.mode = Mode::server;
  hello.kinds = bit(MemoryKind::host) | bit(MemoryKind::device_fd);
  hello.world = 1;
  std::ranges::copy(uuid, hello.gpu_uuid);
  device.send(hello, MessageType::hello);
  EXPECT_THAT(device.refused(), HasSubstr("the reader's GPU is not supported by this build: x"));
}

TEST(HandoffServer, WhatAReaderHeldIsGivenBackHoweverItLeaves) {
  Served served({kView});
  for (const int step : {0, 1, 2, 3, 4}) {
    RawClient client(served.server->path());
    if (step > 0) client.hello();
    if (step > 1) client.expect(MessageType::welcome);
    if (step > 2) client.start(0, 1, 10, 4);
    if (step > 3) client.expect(MessageType::batch);
    client.close();
    EXPECT_TRUE(eventually([&] { return is_idle(*served.server); })) << step;
  }
}

TEST(HandoffServer, ReadersThatLeaveWhileBatchesAreMadeCancelThem) {
  Served served({kView});
  served.data.store->close();
  {
    RawClient client(served.server->path());
    client.hello();
    client.expect(MessageType::welcome);
    client.start(0, 1, 10, 4);
    client.get(1, 9);
    EXPECT_TRUE(eventually([&] { return served.server->statistics().bytes > 0; }));
  }
  EXPECT_TRUE(eventually([&] { return is_idle(*served.server); }));
  served.data.store->open();
}

TEST(HandoffServer, AKilledReaderIsSeenThoughItsChildHoldsTheSocket) {
  Served served({kView});
  int ready[2], end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t reader = ::fork();
  if (reader == 0) {
    RawClient client(served.server->path());
    client.hello();
    client.receive();
    client.get(1, 0);
    client.receive();
    if (::fork() == 0) {  // keeps every descriptor
      char byte;
      ::close(end[1]);
      [[maybe_unused]] const ssize_t got = ::read(end[0], &byte, 1);
      ::_exit(0);
    }
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(eventually([&] { return served.server->statistics().leases == 1; }));
  ::kill(reader, SIGKILL);
  ::waitpid(reader, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return is_idle(*served.server); }));
  for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
}

TEST(HandoffServer, MemoryIsValidWhenTheServerIsGone) {
  auto served = std::make_unique<Served>(std::vector<std::string>{kView});
  RawClient client(served->server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.get(1, 3);
  const Received batch = client.expect(MessageType::batch);
  served = nullptr;
  EXPECT_FALSE(client.receive().has_value());
  EXPECT_EQ(values_of(batch)[0], first_value(12));
}

TEST(HandoffServer, CountsWhatItDelivers) {
  Served served({kView});
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  for (int i = 0; i < 5; ++i) {
    client.get(1, i);
    client.release(client.expect(MessageType::batch).as<BatchMessage>().lease);
  }
  EXPECT_TRUE(eventually([&] { return served.server->statistics().delivered == 5; }));
  EXPECT_EQ(served.engine.counters().bytes_delivered.load(), 5u * 4 * 6 * 4);
}

TEST(HandoffServer, ReadersThatComeAfterARefreshGetTheNewViews) {
  Served* serving = nullptr;
  std::weak_ptr<const int> watched;
  {
    const auto held = std::make_shared<const int>(1);
    watched = held;
    HandoffServer::Options options;
    options.held = held;
    options.refresh = [&serving](bool, Refreshed done) {
      serving->server->set_views(
          {serving->data.view(
              R"({"window": {"time": 1}, "batch": 8, "order": {"shuffle": "none"}})")},
          nullptr);
      done(R"({"changed": true})", nullptr);
    };
    Served served({kView}, 64 << 20, std::move(options));
    options.held = nullptr;
    serving = &served;
    RawClient early(served.server->path());
    early.hello();
    EXPECT_EQ(early.expect(MessageType::welcome).as<WelcomeMessage>().batches, 10);

    RawClient asking(served.server->path());
    const Header refresh{sizeof refresh, MessageType::refresh, kVersion};
    asking.send_bytes(&refresh, sizeof refresh);
    const Received answer = asking.expect(MessageType::refreshed);
    EXPECT_EQ(answer.text(sizeof(RefreshedMessage)), R"({"changed": true})");
    EXPECT_FALSE(asking.receive().has_value());  // the connection ends

    RawClient late(served.server->path());
    late.hello();
    EXPECT_EQ(late.expect(MessageType::welcome).as<WelcomeMessage>().batches, 5);
    early.start(9, 1, 1);
    EXPECT_EQ(values_of(early.expect(MessageType::batch))[0], first_value(36));
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(HandoffServer, AReaderCannotAskForBatchesAndARefresh) {
  HandoffServer::Options options;
  Refreshed waiting;
  options.refresh = [&waiting](bool, Refreshed done) { waiting = std::move(done); };
  Served served({kView}, 64 << 20, std::move(options));
  const Header refresh{sizeof refresh, MessageType::refresh, kVersion};
  {
    RawClient client(served.server->path());
    client.send_bytes(&refresh, sizeof refresh);
    client.start(0, 1, 10);
    EXPECT_THAT(client.refused(), HasSubstr("Hello"));
  }
  RawClient reader(served.server->path());
  reader.hello();
  reader.expect(MessageType::welcome);
  reader.send_bytes(&refresh, sizeof refresh);
  EXPECT_THAT(reader.refused(), HasSubstr("no message of type"));
  waiting("", nullptr);  // the client has left
}

TEST(HandoffServer, ARefreshSaysWhetherItIsForced) {
  HandoffServer::Options options;
  std::vector<bool> asked;
  options.refresh = [&asked](bool force, Refreshed done) {
    asked.push_back(force);
    done("{}", nullptr);
  };
  Served served({kView}, 64 << 20, std::move(options));
  for (const MessageType type : {MessageType::refresh, MessageType::force_refresh}) {
    RawClient client(served.server->path());
    const Header header{sizeof header, type, kVersion};
    client.send_bytes(&header, sizeof header);
    client.expect(MessageType::refreshed);
  }
  EXPECT_EQ(asked, (std::vector<bool>{false, true}));
}

TEST(HandoffServer, MayHaveNothingToReadAgain) {
  Served served({kView});
  RawClient client(served.server->path());
  const Header refresh{sizeof refresh, MessageType::refresh, kVersion};
  client.send_bytes(&refresh, sizeof refresh);
  EXPECT_THAT(client.refused(), HasSubstr("not read again"));
}

}  // namespace server_test
}  // namespace batchfs::handoff

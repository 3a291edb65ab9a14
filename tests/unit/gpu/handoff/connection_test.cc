// One connection without the server's thread: the test completes batches, and nothing waits.

#include "gpu/handoff/connection.h"

#include <map>

#include <gmock/gmock.h>

#include "engine/view/order/order.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace connection_test {

using testing::ElementsAre;
using testing::HasSubstr;

/// Makes no batches itself: records requests.
class NotedDelivery final : public Delivery {
 public:
  struct Asked {
    BatchRequest request;
    Order order;
    Done done;
  };
  Mode mode() const override { return Mode::shm; }
  bool serves(const HelloMessage& hello) const override {
    return (hello.kinds & bit(MemoryKind::host)) != 0;
  }
  std::uint64_t open(BatchRequest request, Order order, Done done) override {
    asked[++last_id] = {std::move(request), order, std::move(done)};
    return last_id;
  }
  void cancel(std::uint64_t opened) override {
    cancelled.push_back(opened);
    const auto entry = asked.extract(opened);
    if (entry)
      entry.mapped().done(nullptr,
                          std::make_exception_ptr(Error(ErrorCode::interrupted, "cancelled")));
  }
  std::uint64_t bytes(const View&, std::int64_t) const override { return 100; }
  std::uint64_t limit() const override { return most; }
  Session session(const HelloMessage&) override { return std::exchange(next_session, {}); }
  void freeze() override { frozen = true; }

  std::map<std::uint64_t, Asked> asked;
  std::vector<std::uint64_t> cancelled;
  std::uint64_t last_id = 0, most = 1000;
  bool frozen = false;
  Session next_session;
};

class Connected : public testing::Test {
 protected:
  Connected() {
    const auto view = data_.view(R"({"window": {"time": 1}, "batch": 4})");
    context.views.push_back(std::make_shared<SharedView>(share_view(view)));
    context.deliveries = {&delivery};
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    connection =
        std::make_unique<Connection>(7, ends[0], context, process, [this](Completion done) {
          EXPECT_EQ(done.connection, 7u);
          completions_.push_back(std::move(done));
        });
    client = std::make_unique<RawClient>(ends[1]);
  }

  /// Does the work of the server's thread until nothing is pending. False when the connection is
  /// over.
  bool step() {
    bool goes_on = connection->readable();
    while (goes_on && !completions_.empty()) {
      Completion completion = std::move(completions_.front());
      completions_.erase(completions_.begin());
      goes_on = connection->completed(std::move(completion));
    }
    return goes_on;
  }
  void greet() {
    client->hello();
    ASSERT_TRUE(step());
    ASSERT_TRUE(next()) << "no Welcome";
    ASSERT_TRUE(connection->greeted());
  }
  std::optional<Received> next() { return client->receive(0); }
  std::vector<std::int64_t> batches_under_way() const {
    std::vector<std::int64_t> batches;
    for (const auto& [id, asked] : delivery.asked) batches.push_back(asked.request.global_batch());
    return batches;
  }
  Delivery::Done take(std::int64_t batch) {
    for (auto it = delivery.asked.begin(); it != delivery.asked.end(); ++it)
      if (it->second.request.global_batch() == batch)
        return delivery.asked.extract(it).mapped().done;
    ADD_FAILURE() << "nobody asked for " << batch;
    return [](auto&&...) {};
  }
  /// A batch in `memories` pieces of memory, all the same file.
  std::shared_ptr<DeliveredBatch> delivered(std::size_t memories = 1) {
    auto made = std::make_shared<DeliveredBatch>();
    for (std::size_t i = 0; i < memories; ++i)
      made->memories.push_back({10 + i, 4096, MemoryKind::host, file_.fd(), true});
    made->tensors = {{0, 0, 96}};
    return made;
  }
  void finish(std::int64_t batch) { take(batch)(delivered(), nullptr); }

  FakeData data_{10, 4, 6};
  MemoryFile file_ = MemoryFiles(false).create("batch", 4096);

  NotedDelivery delivery;
  ServerContext context;
  const std::shared_ptr<ProcessShare> process = std::make_shared<ProcessShare>(100);
  std::unique_ptr<RawClient> client;

 private:
  std::vector<Completion> completions_;

 protected:
  std::unique_ptr<Connection> connection;  // destroyed first: it cancels
};

TEST_F(Connected, BatchesThatAreDoneInAnotherOrderGoOutInOrder) {
  greet();
  client->start(0, 2, 5, 3);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre(0, 2, 4));
  for (const auto& [id, asked] : delivery.asked) EXPECT_EQ(asked.order, Delivery::Order::stream);
  finish(4);
  finish(2);
  ASSERT_TRUE(step());
  EXPECT_FALSE(next()) << "the first is not done";
  finish(0);
  ASSERT_TRUE(step());
  for (const std::int64_t batch : {0, 2, 4}) EXPECT_EQ(next()->as<BatchMessage>().batch, batch);
  EXPECT_FALSE(next());
  EXPECT_EQ(context.leases, 3u);
  EXPECT_EQ(context.held, 300u);
}

TEST_F(Connected, HalfOfTheMemoryIsForWhatNobodyWaitsFor) {
  delivery.most = 500;
  greet();
  client->start(0, 1, 10, 8);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre(0, 1)) << "200 of 250 bytes";
  finish(0);
  finish(1);
  ASSERT_TRUE(step());
  EXPECT_TRUE(batches_under_way().empty());
  // Another connection's batches count, too.
  const std::uint64_t lease = next()->as<BatchMessage>().lease;
  context.held += 1000;
  client->release(lease);
  ASSERT_TRUE(step());
  EXPECT_TRUE(batches_under_way().empty());
  client->release(next()->as<BatchMessage>().lease);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre(2)) << "one there always is";
  context.held -= 1000;
}

TEST_F(Connected, WhatIsNotWantedAnyMoreIsCancelledAndItsEndIsNobodys) {
  greet();
  client->start(0, 1, 10, 2);
  ASSERT_TRUE(step());
  finish(1);  // done, but not sent
  ASSERT_TRUE(step());
  client->start(5, 1, 2, 2, 0, 2);
  ASSERT_TRUE(step());
  EXPECT_EQ(delivery.cancelled.size(), 1u) << "the one that was not done";
  EXPECT_THAT(batches_under_way(), ElementsAre(5, 6));
  EXPECT_EQ(context.held, 200u);
  finish(5);
  finish(6);
  ASSERT_TRUE(step());
  EXPECT_EQ(next()->as<BatchMessage>().batch, 5);
  EXPECT_EQ(next()->as<BatchMessage>().batch, 6);
  EXPECT_EQ(next()->as<EndMessage>().stream, 2u);
}

TEST_F(Connected, ItsEndGivesEverythingBack) {
  greet();
  client->start(0, 1, 10, 3);
  client->get(5, 9);
  ASSERT_TRUE(step());
  finish(0);
  ASSERT_TRUE(step());
  EXPECT_EQ(context.leases, 1u);
  EXPECT_GT(context.held, 100u);
  connection = nullptr;
  EXPECT_EQ(context.leases, 0u);
  EXPECT_EQ(context.held, 0u);
  EXPECT_TRUE(delivery.asked.empty());
}

TEST_F(Connected, MemoryThatComesAgainIsAttachedOnce) {
  greet();
  client->start(0, 1, 4, 4);
  ASSERT_TRUE(step());
  for (std::int64_t batch = 0; batch < 4; ++batch) {
    auto made = delivered();
    made->memories[0].transient = false;
    made->memories[0].id = batch < 2 ? 40 : 41;  // another from the third on
    take(batch)(made, nullptr);
  }
  ASSERT_TRUE(step());
  std::vector<bool> attached;
  for (int i = 0; i < 4; ++i) {
    const Received batch = *next();
    attached.push_back((batch.as<MemoryRecord>(sizeof(BatchMessage)).flags & kMemoryAttached) != 0);
    EXPECT_EQ(batch.descriptors.size(), attached.back() ? 1u : 0u);
  }
  EXPECT_THAT(attached, ElementsAre(true, false, true, false));
}

TEST_F(Connected, MoreMemoryThanAMessageCanTellOfIsAFailureOfThatBatch) {
  greet();
  client->get(1, 0);
  client->get(2, 1);
  ASSERT_TRUE(step());
  take(0)(delivered(kMaxDescriptors + 1), nullptr);
  take(1)(delivered(kMaxDescriptors), nullptr);
  ASSERT_TRUE(step());
  const Received failed = client->expect(MessageType::failed);
  EXPECT_EQ(failed.as<FailedMessage>().request, 1u);
  EXPECT_EQ(failed.as<FailedMessage>().code, static_cast<std::uint32_t>(ErrorCode::not_supported));
  EXPECT_EQ(client->expect(MessageType::batch).descriptors.size(), kMaxDescriptors);
  EXPECT_EQ(context.held, 100u);
}

TEST_F(Connected, AFailedBatchOfTheStreamIsALeaseAsWell) {
  greet();
  client->start(0, 1, 3, 1);
  ASSERT_TRUE(step());
  take(0)(nullptr, std::make_exception_ptr(std::runtime_error("not one of ours")));
  ASSERT_TRUE(step());
  const Received failed = client->expect(MessageType::failed);
  const auto message = failed.as<FailedMessage>();
  EXPECT_EQ(message.code, static_cast<std::uint32_t>(ErrorCode::internal));
  EXPECT_THAT(failed.text(sizeof message), HasSubstr("not one of ours"));
  EXPECT_TRUE(batches_under_way().empty()) << "of a depth of 1";
  EXPECT_EQ(context.held, 0u);
  client->release(message.lease);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre(1));
}

TEST_F(Connected, WhatTheReaderDoesNotTakeWaits) {
  greet();
  // 30 gets at a time, of batches that do not exist: each is answered at once.
  std::size_t answered = 0, asked = 0;
  while (!connection->deaf() && asked < 20'000) {
    for (int i = 0; i < 30; ++i) client->get(++asked, 1000);
    ASSERT_TRUE(step());
  }
  ASSERT_TRUE(connection->deaf());
  EXPECT_TRUE(connection->blocked());
  while (connection->blocked()) {
    while (next()) ++answered;
    ASSERT_TRUE(connection->writable());
  }
  while (next()) ++answered;
  // Requests that it did not listen to meanwhile.
  for (int i = 0; i < 100 && answered < asked; ++i) {
    ASSERT_TRUE(step());
    while (next()) ++answered;
  }
  EXPECT_EQ(answered, asked);
  EXPECT_FALSE(connection->deaf());
}

TEST_F(Connected, GetsAreLimitedAndTheirRankIsTheirOwn) {
  client->hello("", 1, 2);
  ASSERT_TRUE(step());
  client->expect(MessageType::welcome);
  delivery.most = 1 << 20;
  client->get(1, 3);
  client->get(2, 4);
  ASSERT_TRUE(step());
  EXPECT_EQ(delivery.asked.at(1).request.world, 2) << "of its rank: read ahead in its order";
  EXPECT_EQ(delivery.asked.at(1).request.batch, 1);
  EXPECT_EQ(delivery.asked.at(2).request.world, 1) << "of another's";
  EXPECT_EQ(delivery.asked.at(2).order, Delivery::Order::single);
  bool goes_on = true;
  for (std::uint64_t request = 3; goes_on && request < 80; ++request) {
    client->get(request, 0);
    goes_on = step();
  }
  EXPECT_FALSE(goes_on);
  EXPECT_EQ(delivery.last_id, 64u);
  connection = nullptr;
  EXPECT_THAT(client->refused(), HasSubstr("too many batches"));
}

TEST_F(Connected, WhatItsReaderHoldsOfASessionStaysAsItIsAfterItsEnd) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const auto own = std::make_shared<NotedDelivery>();
  delivery.next_session = {own, ends[0]};
  client->hello();
  client->get(1, 0);
  ASSERT_TRUE(step());
  bool given_back = false, frozen_before = false;
  auto held = delivered();
  held->held = std::shared_ptr<const void>(nullptr, [&, watched = own.get()](const void*) {
    given_back = true;
    frozen_before = watched->frozen;
  });
  own->asked.extract(1).mapped().done(std::move(held), nullptr);
  ASSERT_TRUE(step());
  EXPECT_FALSE(own->frozen);
  connection = nullptr;
  EXPECT_TRUE(given_back);
  EXPECT_TRUE(frozen_before);
  EXPECT_FALSE(delivery.frozen) << "others' batches go on";
  ::close(ends[1]);
}

TEST_F(Connected, ASessionsDeliveryIsItsConnectionsAlone) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  auto own = std::make_shared<NotedDelivery>();
  const std::weak_ptr<NotedDelivery> watched = own;
  delivery.next_session = {own, ends[0]};
  client->hello();
  ASSERT_TRUE(step());
  {
    const Received welcome = client->expect(MessageType::welcome);
    EXPECT_EQ(welcome.descriptors.size(), 2u) << "the texts, and the session's";
  }
  client->get(1, 0);
  ASSERT_TRUE(step());
  EXPECT_TRUE(delivery.asked.empty());
  EXPECT_EQ(own->asked.size(), 1u);
  own = nullptr;
  EXPECT_FALSE(watched.expired());
  connection = nullptr;
  EXPECT_TRUE(watched.expired());
  // The other end of the session's socket is closed.
  char byte;
  EXPECT_EQ(::recv(ends[1], &byte, 1, 0), 0);
  ::close(ends[1]);
}

TEST_F(Connected, WhatAnotherConnectionOfTheProcessHoldsCounts) {
  process->take(450);  // of 1000
  greet();
  client->start(0, 1, 10, 8);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre(0))
      << "who holds none gets one, and nothing is made ahead";
  finish(0);
  ASSERT_TRUE(step());
  ASSERT_EQ(next()->type(), MessageType::batch);
  client->send(WantMessage{{}, 1, 1, 8, 0}, MessageType::want);
  ASSERT_TRUE(step());
  EXPECT_THAT(next()->text(sizeof(FailedMessage)), HasSubstr("this process holds 2 batches"));
  process->give_back(450);
  client->get(5, 7);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), testing::Contains(7));
}

TEST_F(Connected, AReaderThatWaitedForABatchThatIsSentGetsNoOtherAhead) {
  greet();
  client->start(0, 1, 10, 1);
  ASSERT_TRUE(step());
  finish(0);
  ASSERT_TRUE(step());
  ASSERT_EQ(next()->type(), MessageType::batch);
  // Written before the batch arrived, read after it was sent.
  client->send(WantMessage{{}, 1, 0, 1, 0}, MessageType::want);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre());
  client->send(WantMessage{{}, 1, kOnlyDepth, 1, 0}, MessageType::want);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre());
  client->send(WantMessage{{}, 1, 1, 1, 0}, MessageType::want);
  ASSERT_TRUE(step());
  EXPECT_THAT(batches_under_way(), ElementsAre(1));
}

TEST_F(Connected, WhatLiesInDeviceMemoryIsNoPartOfTheShare) {
  greet();
  client->start(0, 1, 10, 1);
  ASSERT_TRUE(step());
  EXPECT_EQ(process->bytes(), 100u);
  auto made = delivered();
  made->memories[0].kind = MemoryKind::own;
  take(0)(std::move(made), nullptr);
  ASSERT_TRUE(step());
  EXPECT_EQ(process->bytes(), 0u);
  EXPECT_EQ(process->batches(), 1u);
  client->release(next()->as<BatchMessage>().lease);
  ASSERT_TRUE(step());
  EXPECT_EQ(process->bytes(), 100u) << "the next";
  EXPECT_EQ(process->batches(), 1u);
}

TEST_F(Connected, ItsEndGivesBackItsPartOfTheShare) {
  process->take(50);
  greet();
  client->start(0, 1, 10, 3);
  client->get(5, 7);
  ASSERT_TRUE(step());
  finish(0);
  ASSERT_TRUE(step());
  EXPECT_EQ(process->batches(), 5u);
  connection = nullptr;
  EXPECT_EQ(process->batches(), 1u);
  EXPECT_EQ(process->bytes(), 50u);
  EXPECT_EQ(process->connections, 0u);
}

}  // namespace connection_test
}  // namespace batchfs::handoff

#include "gpu/handoff/host_delivery.h"

#include <future>

#include <gmock/gmock.h>

#include "engine/view/order/order.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace host_delivery_test {

class HostDeliveryTest : public testing::Test {
 protected:
  using Outcome = std::pair<std::shared_ptr<const DeliveredBatch>, std::exception_ptr>;

  std::future<Outcome> open(std::int64_t batch, Delivery::Order order = Delivery::Order::stream) {
    const auto promise = std::make_shared<std::promise<Outcome>>();
    opened = delivery.open(
        BatchRequest{view, nullptr, 0, batch}, order,
        [promise](std::shared_ptr<const DeliveredBatch> delivered, std::exception_ptr error) {
          promise->set_value({std::move(delivered), error});
        });
    return promise->get_future();
  }
  std::int32_t value(const DeliveredBatch& delivered, std::size_t tensor,
                     std::size_t element) const {
    const DeliveredBatch::Tensor& in = delivered.tensors.at(tensor);
    std::int32_t value = 0;
    EXPECT_EQ(::pread(delivered.memories.at(in.memory).fd, &value, 4,
                      static_cast<off_t>(in.offset + 4 * element)),
              4);
    return value;
  }

  FakeData data{10, 4, 6};
  Log log;
  std::shared_ptr<const View> view = data.view(
      R"({"window": {"time": 1}, "batch": 4, "tensors": {"a": {"variables": ["v"]}, "b": {"variables": ["v"], "offsets": {"time": [1]}}}})");
  Engine engine{{.threads = 2, .memory = 64 << 20, .prefetch = false}, log};
  HostDelivery delivery{engine};
  std::uint64_t opened = 0;
};

TEST_F(HostDeliveryTest, GivesOneFileWithEveryTensor) {
  const auto [delivered, error] = open(2).get();
  ASSERT_EQ(error, nullptr);
  ASSERT_EQ(delivered->memories.size(), 1u);
  EXPECT_EQ(delivered->memories[0].kind, MemoryKind::host);
  EXPECT_TRUE(delivered->memories[0].transient);
  ASSERT_EQ(delivered->tensors.size(), 2u);
  for (std::size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(delivered->tensors[t].bytes, 96u);
    EXPECT_LE(delivered->tensors[t].offset + delivered->tensors[t].bytes,
              delivered->memories[0].size);
    for (std::size_t row = 0; row < 4; ++row)
      EXPECT_EQ(value(*delivered, t, 6 * row), first_value(static_cast<std::int64_t>(8 + row + t)));
  }
  EXPECT_EQ(engine.counters().bytes_delivered.load(), delivered->memories[0].size);
  EXPECT_GE(delivery.bytes(*view, 2), delivered->memories[0].size);
  EXPECT_EQ(delivery.limit(), std::uint64_t{64} << 20);
}

TEST_F(HostDeliveryTest, EachBatchHasMemoryOfItsOwnName) {
  const auto first = open(0).get().first, second = open(1).get().first;
  EXPECT_NE(first->memories.at(0).id, second->memories.at(0).id);
  EXPECT_NE(first->memories[0].id, 0u);
}

TEST_F(HostDeliveryTest, ABatchThatFailsSaysWhy) {
  data.store->failing = 3;
  const auto [delivered, error] = open(3, Delivery::Order::single).get();
  EXPECT_EQ(delivered, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error_of(error).code(), ErrorCode::io);
  EXPECT_EQ(engine.counters().bytes_delivered.load(), 0u);
}

TEST_F(HostDeliveryTest, WhatIsCancelledIsInterrupted) {
  data.store->close();
  auto waiting = open(0);
  ASSERT_NE(opened, 0u);
  delivery.cancel(opened);
  EXPECT_EQ(error_of(waiting.get().second).code(), ErrorCode::interrupted);
  data.store->open();
}

TEST_F(HostDeliveryTest, IsForThoseWhoMapMemoryOfTheHost) {
  HelloMessage hello{};
  EXPECT_FALSE(delivery.serves(hello));
  hello.kinds = bit(MemoryKind::device_fd);
  EXPECT_FALSE(delivery.serves(hello));
  hello.kinds |= bit(MemoryKind::host);
  EXPECT_TRUE(delivery.serves(hello));
  EXPECT_EQ(delivery.session(hello).delivery, nullptr) << "one for all";
}

}  // namespace host_delivery_test
}  // namespace batchfs::handoff

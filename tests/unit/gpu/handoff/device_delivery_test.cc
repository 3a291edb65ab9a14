// Batches in device memory, with a simulated device: its memory is a memory file, so the readers'
// view can be checked on any machine.

#include "gpu/handoff/device_delivery.h"

#include <deque>

#include <gmock/gmock.h>

#include "gpu/reader/reader.h"
#include "tests/unit/gpu/handoff/served_on_device.h"

namespace batchfs::handoff {
namespace device_delivery_test {

using testing::HasSubstr;
using testing::Not;

constexpr auto kUuid = reader::FakeDevice::kUuid;
constexpr std::uint64_t kSlotBytes = FakeStream::kSlotBytes;
constexpr std::uint64_t kBatchBytes = 6 * sizeof(std::int32_t);

std::shared_ptr<reader::Reader> open(const ServedOnDevice& served,
                                     std::shared_ptr<reader::FakeDevice> device,
                                     const std::string& mode = "auto",
                                     const std::string& view = "v0", std::uint32_t ahead = 2) {
  return reader::Reader::open({.place = served.path(),
                               .view = view,
                               .ahead = ahead,
                               .mode = mode,
                               .device = std::move(device)});
}

std::int32_t value_of(const reader::Batch& batch) {
  std::int32_t value;
  std::memcpy(&value, batch.tensors[0].data, sizeof value);
  return value;
}

TEST(DeviceDelivery, GivesBatchesInSlotsThatAreMappedOnce) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  const auto reader = open(served, device);
  EXPECT_EQ(reader->mode(), "server");
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {  // the second continues in the same stream
    reader->start({.epoch = epoch});
    for (std::int64_t i = 0; i < 10; ++i) {
      const auto batch = reader->next();
      ASSERT_NE(batch, nullptr);
      EXPECT_EQ(batch->number, i);
      EXPECT_NE(batch->device, nullptr);
      EXPECT_EQ(value_of(*batch), first_value(i));
    }
  }
  EXPECT_EQ(device->maps, 1);
  EXPECT_EQ(device->copies, 0);
  EXPECT_EQ(served.device.streams, 1);
  EXPECT_EQ(served.delivery.statistics().batches, 20u);
  EXPECT_EQ(served.delivery.statistics().bytes, 20u * kBatchBytes);
  EXPECT_EQ(served.engine.counters().bytes_delivered, 20u * kBatchBytes);
}

TEST(DeviceDelivery, IsForReadersOfItsDevice) {
  ServedOnDevice served;
  RawClient client(served.path());
  HelloMessage hello{};
  hello.kinds = bit(MemoryKind::host) | bit(MemoryKind::device_fd);
  hello.world = 1;
  ASSERT_TRUE(client.send(hello, MessageType::hello));  // no UUID
  EXPECT_EQ(client.expect(MessageType::welcome).as<WelcomeMessage>().mode, Mode::shm);
}

TEST(DeviceDelivery, BatchesByNumberComeFromTheHost) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  const auto reader = open(served, device);
  const auto batch = reader->get(0, 7);
  EXPECT_NE(batch->device, nullptr);
  EXPECT_EQ(value_of(*batch), first_value(7));
  EXPECT_EQ(device->copies, 1);
  EXPECT_EQ(served.from_host(DeviceDelivery::Fallback::by_number), 1u);
  EXPECT_THAT(reader->why_copied(), HasSubstr("1 of 1 batches were made on the host: 1 because"));
  EXPECT_THAT(reader->why_copied(), HasSubstr("by_number"));
}

TEST(DeviceDelivery, AReaderThatHoldsAllSlotsGoesOn) {
  ServedOnDevice served;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  std::vector<std::shared_ptr<reader::Batch>> held;
  for (int i = 0; i < 8; ++i) held.push_back(reader->next());
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(value_of(*held[static_cast<std::size_t>(i)]), first_value(i));
  EXPECT_GT(served.from_host(DeviceDelivery::Fallback::slots_held), 0u);
  held.clear();
  for (int i = 8; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
}

TEST(DeviceDelivery, ASlotIsUsedAgainAfterTheConsumersStream) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  const auto reader = open(served, device);
  reader->start({});
  auto batch = reader->next();
  batch->use->note(5);
  batch = nullptr;
  EXPECT_EQ(served.device.released, 0);
  ASSERT_EQ(device->waiting.size(), 1u);
  device->waiting.front()();
  EXPECT_TRUE(eventually([&] { return served.device.released == 1; }));
}

TEST(DeviceDelivery, TwoReadersOfARankShareItsBatches) {
  ServedOnDevice served;
  const auto first = open(served, std::make_shared<reader::FakeDevice>()),
             second = open(served, std::make_shared<reader::FakeDevice>());
  const auto offset = [](const reader::Batch& batch) {
    return batch.tensors[0].data - batch.device_memory.at(0)->data();
  };
  first->start({});
  auto held = first->next();  // until the other has it too
  second->start({});
  auto same = second->next();
  EXPECT_EQ(served.device.streams, 1);
  EXPECT_EQ(value_of(*same), first_value(0));
  EXPECT_EQ(offset(*same), offset(*held));
  // A batch that was made for the other reader is delivered, too, and counts.
  const auto given = served.delivery.statistics();
  EXPECT_GE(given.batches, 2u);
  EXPECT_EQ(given.bytes, given.batches * kBatchBytes);
  EXPECT_EQ(served.from_host(DeviceDelivery::Fallback::behind), 0u);
  held = same = nullptr;
  for (int i = 1; i < 10; ++i) {
    EXPECT_EQ(value_of(*first->next()), first_value(i));
    EXPECT_EQ(value_of(*second->next()), first_value(i));
  }
}

TEST(DeviceDelivery, BeginningAgainMakesANewStream) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  const auto reader = open(served, device);
  for (int pass = 0; pass < 5; ++pass) {
    reader->start({});
    for (int i = 0; i < 2; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
  }
  EXPECT_TRUE(eventually([&] { return served.device.alive <= 1; }));
}

TEST(DeviceDelivery, AnIdleStreamIsEnded) {
  ServedOnDevice served;
  {
    const auto reader = open(served, std::make_shared<reader::FakeDevice>());
    reader->start({});
    EXPECT_EQ(value_of(*reader->next()), first_value(0));
    EXPECT_EQ(served.device.alive, 1);
  }
  EXPECT_TRUE(eventually(
      [&] { return served.device.alive == 0 && served.delivery.statistics().memory == 0; }));
}

TEST(DeviceDelivery, WhereThereIsNoRoomBatchesComeFromTheHost) {
  ServedOnDevice served;
  served.device.refuse = true;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
  EXPECT_EQ(served.from_host(DeviceDelivery::Fallback::no_memory), 10u);
  EXPECT_EQ(served.from_host(DeviceDelivery::Fallback::failed), 0u);
  EXPECT_THAT(
      reader->why_copied(),
      HasSubstr(
          "10 of 10 batches were made on the host: 10 because there is too little GPU memory"));
}

TEST(DeviceDelivery, ALateViewGetsTheMemoryOfReadersThatHaveLeft) {
  ServedOnDevice served(6, std::chrono::minutes(10));
  for (int i = 0; i < 6; ++i) {
    const auto reader =
        open(served, std::make_shared<reader::FakeDevice>(), "auto", "v" + std::to_string(i));
    reader->start({});
    EXPECT_EQ(value_of(*reader->next()), first_value(0));
    EXPECT_GE(served.device.last_memory(), ServedOnDevice::kMemory / 4) << "view " << i;
    EXPECT_EQ(reader->why_copied(), "");
  }
  EXPECT_LE(served.delivery.statistics().memory, ServedOnDevice::kMemory);
  EXPECT_EQ(served.device.streams, 6);
}

TEST(DeviceDelivery, StreamsThatFitAreKeptForReadersThatComeBack) {
  ServedOnDevice served(2, std::chrono::minutes(10));
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const char* view : {"v0", "v1"}) {
      const auto reader = open(served, std::make_shared<reader::FakeDevice>(), "auto", view);
      reader->start({.epoch = epoch});
      for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
    }
  EXPECT_EQ(served.device.streams, 2);
}

TEST(DeviceDelivery, AViewThatNeedsMoreThanItsShareGetsAllThatIsFree) {
  ServedOnDevice served(2, std::chrono::minutes(10));
  for (const char* view : {"v0", "v1"}) {
    const auto reader = open(served, std::make_shared<reader::FakeDevice>(), "auto", view);
    reader->start({});
    EXPECT_EQ(value_of(*reader->next()), first_value(0));
    EXPECT_EQ(reader->why_copied(), "");
    served.device.needed = ServedOnDevice::kMemory / 4 * 3;
  }
  EXPECT_EQ(served.device.last_memory(), ServedOnDevice::kMemory);
}

TEST(DeviceDelivery, TheOnlyReadersLargeBatchesGetMoreThanHalf) {
  constexpr std::uint64_t kMemory = 20 * 24;  // twenty batches
  ServedOnDevice served(1, std::chrono::minutes(10), true, kMemory);
  served.device.needed = kMemory / 4;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  const auto held = reader->next();
  EXPECT_EQ(value_of(*held), first_value(0));
  EXPECT_EQ(served.device.last_memory(), kMemory / 4 * 3);
  reader->start({.done = 5});  // starts a new stream and holds a batch of the old one
  EXPECT_EQ(value_of(*reader->next()), first_value(5));
  EXPECT_EQ(served.device.last_memory(), kMemory / 4);
  EXPECT_EQ(value_of(*held), first_value(0));
  EXPECT_EQ(reader->why_copied(), "");
}

TEST(DeviceDelivery, TheOnlyReadersSmallBatchesGetHalf) {
  ServedOnDevice served(1, std::chrono::minutes(10), true);
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  EXPECT_EQ(value_of(*reader->next()), first_value(0));
  EXPECT_EQ(served.device.last_memory(), ServedOnDevice::kMemory / 2);
}

TEST(DeviceDelivery, ReadersKeepTheirMemoryAndALateViewIsTriedAgainWhenTheyLeave) {
  ServedOnDevice served(2, std::chrono::minutes(10));
  auto first = open(served, std::make_shared<reader::FakeDevice>(), "auto", "v0");
  first->start({});
  auto held = first->next();
  served.device.needed = ServedOnDevice::kMemory / 4 * 3;
  const auto second = open(served, std::make_shared<reader::FakeDevice>(), "auto", "v1");
  second->start({});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(value_of(*second->next()), first_value(i));
  EXPECT_EQ(served.device.streams, 1);
  EXPECT_EQ(value_of(*held), first_value(0));
  EXPECT_GE(served.from_host(DeviceDelivery::Fallback::no_memory), 5u);
  held = nullptr;
  first = nullptr;
  EXPECT_TRUE(eventually([&] { return served.server->statistics().readers == 1; }));
  second->start({.epoch = 1});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*second->next()), first_value(i));
  EXPECT_EQ(served.device.streams, 2);
  EXPECT_EQ(served.from_host(DeviceDelivery::Fallback::failed), 0u);
}

TEST(DeviceDelivery, ReadingFarAheadDoesNotMakeBatchesOnTheHost) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  const auto reader = open(served, device, "auto", "v0", 8);
  reader->start({});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
  EXPECT_EQ(device->copies, 0);
  EXPECT_EQ(reader->why_copied(), "");
}

TEST(DeviceDelivery, HoldingMoreWhileBatchesAreReadyDoesNotMakeBatchesOnTheHost) {
  ServedOnDevice served;
  served.device.slots = 5;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>(), "auto", "v0", 8);
  reader->start({});
  std::deque<std::shared_ptr<reader::Batch>> held;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(eventually([&] { return served.device.taken >= std::min(i + 3, 10); }));
    held.push_back(reader->next());
    EXPECT_EQ(value_of(*held.back()), first_value(i));
    if (held.size() > 2) held.pop_front();
  }
  EXPECT_EQ(reader->why_copied(), "");
}

TEST(DeviceDelivery, FewerSlotsThanAReaderHoldsDoNotStopIt) {
  ServedOnDevice served;
  served.device.slots = 2;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  std::vector<std::shared_ptr<reader::Batch>> held;
  for (int i = 0; i < 4; ++i) held.push_back(reader->next());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(value_of(*held[static_cast<std::size_t>(i)]), first_value(i));
  EXPECT_THAT(reader->why_copied(), HasSubstr("slots_held"));
}

TEST(DeviceDelivery, BeginningAnewWithABatchInHandIsNotBehind) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  const auto reader = open(served, device);
  std::shared_ptr<reader::Batch> batch;
  for (int pass = 0; pass < 4; ++pass) {
    reader->start({});
    for (int i = 0; i < 5; ++i) {
      batch = reader->next();
      EXPECT_EQ(value_of(*batch), first_value(i));
    }
  }
  EXPECT_EQ(device->copies, 0) << reader->why_copied();
}

TEST(DeviceDelivery, WhatTheGpuDoesNotDecodeIsCountedAsThat) {
  ServedOnDevice served;
  served.device.undecoded_place = 2;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
  EXPECT_EQ(served.from_host(DeviceDelivery::Fallback::not_decoded), 1u);
  EXPECT_THAT(
      reader->why_copied(),
      HasSubstr("1 of 10 batches were made on the host: 1 because the GPU does not decode"));
}

TEST(DeviceDelivery, ADeviceThatFailsStopsNobody) {
  ServedOnDevice served;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  for (int i = 0; i < 10; ++i) {
    if (i == 3) served.device.fail = true;
    EXPECT_EQ(value_of(*reader->next()), first_value(i));
  }
  EXPECT_GT(served.from_host(DeviceDelivery::Fallback::failed), 0u);
}

TEST(DeviceDelivery, ABatchThatCannotBeMadeFailsAlone) {
  ServedOnDevice served;
  served.device.bad_place = 2;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  for (int i = 0; i < 10; ++i) {
    if (i == 2)
      EXPECT_THROW(reader->next(), Error);
    else
      EXPECT_EQ(value_of(*reader->next()), first_value(i));
  }
}

TEST(DeviceDelivery, AReaderThatCannotMapCopies) {
  ServedOnDevice served;
  const auto device = std::make_shared<reader::FakeDevice>();
  device->cannot_map = true;
  const auto reader = open(served, device);
  reader->start({});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
  EXPECT_EQ(reader->mode(), "shm");
  EXPECT_EQ(reader->why_copied(), "the driver maps nothing");
  const auto insisting = open(served, device, "server");
  insisting->start({});
  EXPECT_THROW(insisting->next(), Error);
}

TEST(DeviceDelivery, ADeadReaderCostsItsLeasesOnly) {
  ServedOnDevice served;
  for (int killed = 0; killed < 4; ++killed) {
    RawClient client(served.path());
    HelloMessage hello{};
    hello.kinds = bit(MemoryKind::host) | bit(MemoryKind::device_fd);
    hello.world = 1;
    std::memcpy(hello.gpu_uuid, kUuid.data(), kUuid.size());
    ASSERT_TRUE(client.send(hello, MessageType::hello));
    EXPECT_EQ(client.expect(MessageType::welcome).as<WelcomeMessage>().mode, Mode::server);
    if (killed > 0) {
      ASSERT_TRUE(client.start(0, 1, 10, 3));
    }
    for (int i = 1; i < killed; ++i) {
      const Received batch = client.expect(MessageType::batch);
      const auto record = batch.as<MemoryRecord>(sizeof(BatchMessage));
      EXPECT_EQ((record.flags & kMemoryAttached) != 0, !batch.descriptors.empty());
    }
    client.close();
    EXPECT_TRUE(eventually([&] {
      return served.server->statistics().leases == 0 &&
             served.device.taken == served.device.released;
    }));
  }
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(value_of(*reader->next()), first_value(i));
}

TEST(DeviceDelivery, ASlotThatIsHeldWhenTheServerEndsIsNotUsedAgain) {
  ServedOnDevice served;
  const auto reader = open(served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  const auto batch = reader->next();
  EXPECT_TRUE(eventually([&] { return served.device.taken == 3; }));  // all slots
  served.server = nullptr;
  EXPECT_EQ(served.device.released, 0);
  EXPECT_EQ(value_of(*batch), first_value(0));
}

TEST(DeviceDelivery, BatchesOutliveTheServer) {
  auto served = std::make_unique<ServedOnDevice>();
  const auto reader = open(*served, std::make_shared<reader::FakeDevice>());
  reader->start({});
  const auto batch = reader->next();
  served = nullptr;
  EXPECT_EQ(value_of(*batch), first_value(0));
  EXPECT_THROW(
      {
        while (reader->next()) {
        }
      },
      Error);
}

}  // namespace device_delivery_test
}  // namespace batchfs::handoff

// A stream whose programs a reader runs: here the test is the reader, and only says that it has run
// them.
#include "gpu/handoff/reader_slots.h"

#include <filesystem>
#include <iterator>
#include <memory>
#include <semaphore>
#include <vector>

#include <gmock/gmock.h>

#include "gpu/handoff/messages.h"
#include "gpu/program/program_setup.h"
#include "tests/unit/descriptor_attacks.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace reader_slots_test {

using testing::HasSubstr;

constexpr std::uint64_t kMemory = 256 << 20;

struct Daemon {
  explicit Daemon(int threads) : engine({.threads = threads, .memory = 512 << 20}, log) {}
  Log log;
  Engine engine;
  SocketWatcher watcher;
};

/// Both ends of the sockets that a stream talks over.
class Stream {
 public:
  explicit Stream(std::shared_ptr<Daemon> daemon = std::make_shared<Daemon>(2))
      : daemon_(std::move(daemon)) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel_), 0);
  }
  ~Stream() {
    slots = nullptr;
    for (const int fd : {channel_[0], channel_[1], socket_})
      if (fd >= 0) ::close(fd);
  }

  void open(std::int64_t batch = 0, std::uint64_t memory = kMemory) {
    slots = reader_slots(daemon_->engine, daemon_->watcher, channel_[0], 77,
                         {.view = view_, .batch = batch}, memory);
    slots->on_change([this] { changed_.release(); });
    ReceivedMessage received;
    ASSERT_TRUE(receive_message(channel_[1], sizeof(SetupMessage), received));
    ASSERT_EQ(received.bytes.size(), sizeof setup);
    std::memcpy(&setup, received.bytes.data(), sizeof setup);
    ASSERT_EQ(received.descriptors.size(), 3u);  // the setup, staging memory, the programs' socket
    for (const int i : {0, 1})
      EXPECT_EQ(attacks_that_work(received.descriptors[static_cast<std::size_t>(i)].get()), "");
    socket_ = received.descriptors[2].release();
  }
  void refuse_setups() { ::close(std::exchange(channel_[1], -1)); }

  /// The number of the next program.
  std::uint64_t program() const {
    ReceivedMessage received;
    EXPECT_TRUE(receive_message(socket_, sizeof(ProgramMessage), received));
    ProgramMessage message{};
    std::memcpy(&message, received.bytes.data(), std::min(sizeof message, received.bytes.size()));
    EXPECT_EQ(message.header.type, MessageType::program);
    return message.number;
  }
  void ended(std::uint64_t number, std::uint32_t refused = 0) const {
    EndedMessage message{};
    message.header = {sizeof message, MessageType::ended, kVersion};
    message.number = number;
    message.count = refused;
    EXPECT_TRUE(send_message(socket_, std::as_bytes(std::span(&message, 1))));
  }
  void hang_up() { ::close(std::exchange(socket_, -1)); }

  /// The next batch, once it is complete.
  SlotStream::Slot next() const {
    for (;;) {
      if (auto slot = slots->try_next()) return *std::move(slot);
      changed_.acquire();
    }
  }
  Counters& counters() { return daemon_->engine.counters(); }
  Error failure() const {
    try {
      next();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::internal, "a batch came");
  }

 private:
  FakeData data_{10, 4, 6};
  const std::shared_ptr<Daemon> daemon_;
  const std::shared_ptr<const View> view_ =
      data_.view(R"({"window": {"time": 1}, "batch": 2, "epochs": 1})");
  int channel_[2] = {-1, -1}, socket_ = -1;
  mutable std::counting_semaphore<> changed_{0};

 public:
  SetupMessage setup{};
  std::unique_ptr<SlotStream> slots;
};

TEST(ReaderSlots, SaysWhatItIs) {
  Stream stream;
  stream.open();
  EXPECT_EQ(stream.setup.id, 77u);
  EXPECT_EQ(stream.slots->id(), 77u);
  EXPECT_EQ(stream.slots->kind(), MemoryKind::own);
  EXPECT_EQ(stream.slots->memory(), kMemory);
  EXPECT_EQ(stream.slots->fd(), -1);
  EXPECT_GE(stream.slots->slots(), 2u);
  EXPECT_FALSE(stream.slots->broken());
}

TEST(ReaderSlots, BatchesLieInSlotsThatAreUsedAgain) {
  Stream stream;
  stream.open(17);  // of twenty
  for (int b = 17; b < 20; ++b) {
    stream.ended(stream.program());
    const SlotStream::Slot slot = stream.next();
    ASSERT_EQ(slot.tensors.size(), 1u);
    EXPECT_EQ(slot.tensors[0].bytes, 48u);  // two samples of six
    EXPECT_LE(slot.tensors[0].offset + slot.tensors[0].bytes, stream.slots->size());
    slot.release();
  }
  EXPECT_EQ(stream.failure().code(), ErrorCode::not_found);  // behind the last epoch's last
  EXPECT_FALSE(stream.slots->broken());
  EXPECT_EQ(stream.counters().bytes_fetched, 3 * 48u);
  EXPECT_EQ(stream.counters().bytes_decoded, 3 * 48u);
}

TEST(ReaderSlots, WhatTheReaderRefusesIsForTheHost) {
  Stream stream;
  stream.open();
  stream.ended(stream.program(), kAllRefused);
  EXPECT_EQ(stream.failure().code(), ErrorCode::not_supported);
  EXPECT_FALSE(stream.slots->broken());
}

TEST(ReaderSlots, NonsenseAndHangingUpEndIt) {
  for (const bool nonsense : {true, false}) {
    Stream stream;
    stream.open();
    if (nonsense)
      stream.ended(1000);
    else
      stream.hang_up();
    const Error error = stream.failure();
    EXPECT_EQ(error.code(), nonsense ? ErrorCode::corrupt : ErrorCode::io);
    EXPECT_THAT(error.why(), HasSubstr(nonsense ? "malformed Ended" : "the reader"));
    EXPECT_TRUE(stream.slots->broken());
  }
}

TEST(ReaderSlots, EndsWhenItIsTold) {
  Stream stream;
  stream.open();
  std::thread stopping([&] { stream.slots->stop(); });
  EXPECT_EQ(stream.failure().code(), ErrorCode::interrupted);
  stopping.join();
  EXPECT_TRUE(stream.slots->broken());
}

std::ptrdiff_t threads_of_the_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(ReaderSlots, StreamsHaveNoThreads) {
  constexpr int kStreams = 8;
  const auto daemon = std::make_shared<Daemon>(1);
  const std::ptrdiff_t before = threads_of_the_process();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Stream>(daemon));
    streams.back()->open(18);  // of twenty: no stream ends before the threads are counted
    streams.back()->ended(streams.back()->program());
    streams.back()->next().release();
  }
  EXPECT_LE(threads_of_the_process() - before, daemon->engine.state().threads);
}

TEST(ReaderSlots, WithoutTheMemoryOrTheReaderThereIsNone) {
  Stream stream;
  const auto code = [&](std::uint64_t memory) {
    try {
      stream.open(0, memory);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code(4096), ErrorCode::no_memory);
  stream.refuse_setups();
  EXPECT_EQ(code(kMemory), ErrorCode::interrupted);
}

}  // namespace reader_slots_test
}  // namespace batchfs::handoff

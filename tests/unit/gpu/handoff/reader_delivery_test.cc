// Mode client, the server's side: a client that claims to have run the programs, but does not.

#include "gpu/handoff/reader_delivery.h"

#include <numeric>

#include "gpu/handoff/messages.h"
#include "gpu/program/program_setup.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace reader_delivery_test {

/// An engine on synthetic data, and a server whose readers decode in their own process if they can.
class Server {
 public:
  explicit Server(const std::string& view = R"({"window": {"time": 1}, "batch": 2})")
      : directory_(temporary_directory()) {
    server_ = std::make_unique<HandoffServer>(
        HandoffServer::Options{.views = {data_.view(view)}, .deliveries = {&readers, &host_}},
        Listener(directory_ + "/s"), log_);
  }
  ~Server() {
    server_ = nullptr;
    ::rmdir(directory_.c_str());
  }
  const std::string& path() const { return server_->path(); }
  bool is_idle() const {
    const auto now = server_->statistics();
    return now.readers == 0 && now.leases == 0 && now.bytes == 0 &&
           readers.statistics().readers == 0;
  }

 private:
  FakeData data_{10, 4, 6};
  Log log_;
  Engine engine_{{.threads = 2, .memory = 64 << 20}, log_};
  HostDelivery host_{engine_};

 public:
  ReaderDelivery readers{engine_, host_, log_};

 private:
  std::string directory_;
  std::unique_ptr<HandoffServer> server_;
};

/// Batches that came from the host, for this reason or for any.
std::uint64_t from_host(const Server& server, Fallback why = Fallback::none) {
  const auto counts = server.readers.statistics().fallbacks;
  if (why != Fallback::none) return counts[static_cast<std::size_t>(why)];
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::vector<std::byte> bytes_of(int fd, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  EXPECT_EQ(::pread(fd, bytes.data(), size, 0), static_cast<ssize_t>(size));
  return bytes;
}

class Decoding {
 public:
  explicit Decoding(const Server& server, std::uint32_t device_mib = 512,
                    Mode wanted = Mode::automatic)
      : client(server.path()) {
    HelloMessage hello{};
    hello.mode = wanted;
    hello.kinds = bit(MemoryKind::host) | bit(MemoryKind::own);
    hello.device_mib = device_mib;
    hello.world = 1;
    client.send(hello, MessageType::hello);
    Received welcome = client.expect(MessageType::welcome);
    this->mode = welcome.as<WelcomeMessage>().mode;
    if (welcome.descriptors.size() > 1) channel_ = welcome.descriptors[1].release();
  }
  ~Decoding() {
    for (const int fd : {channel_, socket_})
      if (fd >= 0) ::close(fd);
  }

  /// Takes the next Setup.
  void set_up() {
    ReceivedMessage received;
    ASSERT_TRUE(receive_message(channel_, sizeof(SetupMessage), received));
    SetupMessage message;
    ASSERT_EQ(received.bytes.size(), sizeof message);
    std::memcpy(&message, received.bytes.data(), sizeof message);
    ASSERT_EQ(message.header.type, MessageType::setup);
    ASSERT_EQ(received.descriptors.size(), 3u);
    setup =
        gpu::ProgramSetup::from_bytes(bytes_of(received.descriptors[0].get(), message.setup_size));
    EXPECT_EQ(setup.sizes.staging, message.staging_size);
    struct stat staging;
    ASSERT_EQ(::fstat(received.descriptors[1].get(), &staging), 0);
    EXPECT_GE(static_cast<std::uint64_t>(staging.st_size), message.staging_size);
    id = message.id;
    if (socket_ >= 0) ::close(socket_);
    socket_ = received.descriptors[2].release();
  }
  /// Takes the next program, and checks it.
  gpu::Program program() {
    ReceivedMessage received;
    if (!receive_message(socket_, sizeof(ProgramMessage), received))
      throw std::runtime_error("no program came");
    ProgramMessage message;
    std::memcpy(&message, received.bytes.data(), sizeof message);
    gpu::Program made(bytes_of(received.descriptors.at(0).get(), message.size));
    gpu::check_program(made, setup.sizes, setup.conversions);
    EXPECT_EQ(made.header().number, message.number);
    return made;
  }
  void ended(std::uint64_t number, std::uint32_t refused = 0) {
    EndedMessage message{};
    message.header = {sizeof message, MessageType::ended, kVersion};
    message.number = number;
    message.count = refused;
    send_message(socket_, std::as_bytes(std::span(&message, 1)));
  }
  void wait_for_program() const {
    pollfd waiting{socket_, POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 20'000), 1);
  }
  /// The decoder has failed.
  void failed(ErrorCode code) {
    EndedMessage message{};
    message.header = {sizeof message, MessageType::ended, kVersion};
    message.code = static_cast<std::uint32_t>(code);
    send_message(socket_, std::as_bytes(std::span(&message, 1)));
  }
  void hang_up() { ::close(std::exchange(socket_, -1)); }

  RawClient client;
  Mode mode = Mode::automatic;
  gpu::ProgramSetup setup;
  std::uint64_t id = 0;

 private:
  int channel_ = -1, socket_ = -1;
};

TEST(ReaderDelivery, BatchesComeWhenTheirProgramsHaveEnded) {
  Server server;
  Decoding reader(server);
  ASSERT_EQ(reader.mode, Mode::client);
  reader.client.start(0, 1, 5);
  reader.set_up();
  for (std::int64_t b = 0; b < 5; ++b) {
    const gpu::Program program = reader.program();
    EXPECT_EQ(program.header().batch, static_cast<std::uint64_t>(b));
    EXPECT_FALSE(reader.client.receive(20).has_value()) << "a batch came before its program ended";
    reader.ended(program.header().number);
    const Received batch = reader.client.expect(MessageType::batch);
    const auto message = batch.as<BatchMessage>();
    EXPECT_EQ(message.batch, b);
    EXPECT_TRUE(batch.descriptors.empty());
    const auto memory = batch.as<MemoryRecord>(sizeof message);
    EXPECT_EQ(memory.kind, MemoryKind::own);
    EXPECT_EQ(memory.id, reader.id);
    EXPECT_EQ(memory.flags, 0u);
    const auto tensor = batch.as<TensorRecord>(sizeof message + sizeof memory);
    EXPECT_EQ(tensor.offset, program.header().slot * reader.setup.slot_bytes);
    EXPECT_LE(tensor.offset + tensor.bytes, memory.size);
    reader.client.release(message.lease);
  }
  reader.client.expect(MessageType::end);
  EXPECT_EQ(server.readers.statistics().batches, 5u);
  EXPECT_EQ(from_host(server), 0u);
}

TEST(ReaderDelivery, WhatADecoderRefusesComesFromTheHost) {
  Server server;
  Decoding reader(server);
  reader.client.start(0, 1, 2);
  reader.set_up();
  reader.ended(reader.program().header().number, kAllRefused);
  const Received batch = reader.client.expect(MessageType::batch);
  EXPECT_EQ(batch.as<MemoryRecord>(sizeof(BatchMessage)).kind, MemoryKind::host);
  EXPECT_EQ(values_of(batch)[0], first_value(0));
  reader.ended(reader.program().header().number);
  // The refused chunk is recorded: batches that use it come from the host in any case.
  EXPECT_EQ(reader.client.expect(MessageType::batch).as<BatchMessage>().batch, 1);
  EXPECT_GE(from_host(server, Fallback::not_decoded), 1u);
  EXPECT_EQ(from_host(server, Fallback::not_decoded), from_host(server));
}

TEST(ReaderDelivery, ADecoderThatFailsLeavesTheHost) {
  for (const int step : {0, 1, 2}) {
    Server server;
    Decoding reader(server);
    reader.client.start(0, 1, 3);
    reader.set_up();
    if (step == 1) reader.program();
    if (step == 2)
      reader.ended(77);  // nonsense
    else
      reader.hang_up();
    for (std::int64_t b = 0; b < 3; ++b) {
      const Received batch = reader.client.expect(MessageType::batch);
      EXPECT_EQ(batch.as<BatchMessage>().batch, b);
      EXPECT_EQ(values_of(batch)[0], first_value(2 * b));
      reader.client.release(batch.as<BatchMessage>().lease);
    }
    EXPECT_EQ(from_host(server, Fallback::failed), 3u);
  }
}

TEST(ReaderDelivery, WhatAReaderThatLeavesAskedForIsNotMade) {
  Server server;
  Decoding reader(server);
  reader.client.start(0, 1, 3);
  reader.set_up();
  reader.wait_for_program();
  reader.failed(ErrorCode::interrupted);
  reader.hang_up();
  const Received failed = reader.client.expect(MessageType::failed);
  EXPECT_EQ(failed.as<FailedMessage>().code, static_cast<std::uint32_t>(ErrorCode::interrupted));
  EXPECT_EQ(from_host(server), 0u);
}

TEST(ReaderDelivery, ADecoderWithoutMemoryIsCountedAsThat) {
  Server server;
  Decoding reader(server);
  reader.client.start(0, 1, 3);
  reader.set_up();
  reader.wait_for_program();  // it is left unread
  reader.failed(ErrorCode::no_memory);
  reader.hang_up();
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto message = reader.client.expect(MessageType::batch).as<BatchMessage>();
    EXPECT_EQ(message.batch, b);
    EXPECT_EQ(message.fallback, Fallback::no_memory);
    reader.client.release(message.lease);
  }
  EXPECT_EQ(from_host(server, Fallback::no_memory), 3u);
  EXPECT_EQ(from_host(server), 3u);
}

TEST(ReaderDelivery, ByNumberFromTheHost) {
  Server server;
  Decoding reader(server);
  reader.client.get(1, 3);
  EXPECT_EQ(values_of(reader.client.expect(MessageType::batch))[0], first_value(6));
}

TEST(ReaderDelivery, AReaderMayGoAtAnyMoment) {
  Server server;
  for (const int step : {0, 1, 2, 3, 4}) {
    {
      Decoding reader(server);
      if (step > 0) reader.client.start(0, 1, 5);
      if (step > 1) reader.set_up();
      if (step > 2) {
        const gpu::Program program = reader.program();
        if (step > 3) {
          reader.ended(program.header().number);
          reader.client.expect(MessageType::batch);
        }
      }
    }
    EXPECT_TRUE(eventually([&] { return server.is_idle(); })) << "step " << step;
  }
}

TEST(ReaderDelivery, TheServerMayGoAtAnyMoment) {
  for (const int step : {0, 1, 2}) {
    auto server = std::make_unique<Server>();
    Decoding reader(*server);
    if (step > 0) reader.client.start(0, 1, 5);
    if (step > 1) reader.set_up();
    server = nullptr;
    EXPECT_FALSE(reader.client.receive().has_value());
  }
}

TEST(ReaderDelivery, AStreamThatBeginsAnewHasASetupOfItsOwn) {
  Server server;
  Decoding reader(server);
  reader.client.start(0, 1, 5);
  reader.set_up();
  const std::uint64_t before = reader.id;
  reader.ended(reader.program().header().number);
  const Received first = reader.client.expect(MessageType::batch);
  reader.client.release(first.as<BatchMessage>().lease);
  reader.client.start(0, 1, 2, 2, 0, 2);  // after the last batch of the first stream
  reader.set_up();
  EXPECT_NE(reader.id, before);
  reader.ended(reader.program().header().number);
  const auto message = reader.client.expect(MessageType::batch).as<BatchMessage>();
  EXPECT_EQ(message.stream, 2u);
  EXPECT_EQ(message.batch, 0);
}

TEST(ReaderDelivery, OnlyForThoseWhoCan) {
  Server server;
  EXPECT_EQ(Decoding(server, 0).mode, Mode::shm);
  EXPECT_THROW(Decoding(server, 0, Mode::client), std::exception);
  EXPECT_EQ(Decoding(server, 512, Mode::shm).mode, Mode::shm);
  // Too little memory: the stream is the host's.
  Decoding small(server, 2);
  EXPECT_EQ(small.mode, Mode::client);
  small.client.start(0, 1, 1);
  EXPECT_EQ(values_of(small.client.expect(MessageType::batch))[0], first_value(0));
}

}  // namespace reader_delivery_test
}  // namespace batchfs::handoff

#pragma once
// A reader that sends given bytes, for tests of the server.

#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor_passing.h"
#include "gpu/handoff/connect.h"
#include "gpu/handoff/host_delivery.h"
#include "gpu/handoff/server.h"
#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/eventually.h"

namespace batchfs::handoff {

inline std::string temporary_directory() {
  char name[] = "/tmp/batchfs-test-XXXXXX";
  if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
  return name;
}

/// An engine on synthetic data and a server of its views.
class Served {
 public:
  explicit Served(
      const std::vector<std::string>& views = {R"({"window": {"time": 1}, "batch": 4})"},
      std::uint64_t memory = 64 << 20, HandoffServer::Options options = {},
      FakeData of = FakeData{10, 4, 6})
      : data(std::move(of)),
        engine({.threads = 2, .memory = memory}, log),
        host(engine),
        directory(temporary_directory()) {
    for (const std::string& view : views) options.views.push_back(data.view(view));
    options.deliveries = {&host};
    server = std::make_unique<HandoffServer>(std::move(options), Listener(directory + "/s"), log);
  }
  ~Served() {
    server = nullptr;
    ::rmdir(directory.c_str());
  }

  FakeData data;
  Log log;
  Engine engine;
  HostDelivery host;
  std::string directory;
  std::unique_ptr<HandoffServer> server;
};

/// Nothing is held for any reader.
inline bool is_idle(const HandoffServer& server) {
  const auto now = server.statistics();
  return now.readers == 0 && now.leases == 0 && now.bytes == 0;
}

struct Received {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> descriptors;

  MessageType type() const { return as<Header>().type; }
  template <class Message>
  Message as(std::size_t offset = 0) const {
    Message message;
    if (bytes.size() < offset + sizeof message)
      throw std::runtime_error("the message is too short");
    std::memcpy(&message, bytes.data() + offset, sizeof message);
    return message;
  }
  std::string text(std::size_t offset) const {
    return std::string(reinterpret_cast<const char*>(bytes.data()) + offset, bytes.size() - offset);
  }
};

class RawClient {
 public:
  explicit RawClient(const std::string& path) : fd_(connect_to(path)) {
    if (fd_ < 0) throw std::runtime_error("connect: " + std::string(std::strerror(errno)));
  }
  /// Owns a connected socket.
  explicit RawClient(int fd) : fd_(fd) {}
  ~RawClient() {
    if (fd_ >= 0) ::close(fd_);
  }
  RawClient(const RawClient&) = delete;

  int fd() const { return fd_; }
  void close() { ::close(std::exchange(fd_, -1)); }

  /// False if the connection is closed.
  bool send_bytes(const void* bytes, std::size_t size) {
    return ::send(fd_, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }
  template <class Message>
  bool send(Message message, MessageType type) {
    message.header = {sizeof message, type, kVersion};
    return send_bytes(&message, sizeof message);
  }
  bool hello(const std::string& view = "", std::int64_t rank = 0, std::int64_t world = 1) {
    HelloMessage message{};
    message.kinds = bit(MemoryKind::host);
    message.rank = rank;
    message.world = world;
    message.name_length = static_cast<std::uint32_t>(view.size());
    std::memcpy(message.name, view.data(), std::min(view.size(), sizeof message.name));
    return send(message, MessageType::hello);
  }
  bool start(std::int64_t first, std::int64_t step, std::int64_t count, std::uint32_t depth = 2,
             std::int64_t epoch = 0, std::uint64_t stream = 1) {
    return send(StartMessage{{}, stream, epoch, first, step, count, depth, 0}, MessageType::start);
  }
  bool get(std::uint64_t request, std::int64_t batch, std::int64_t epoch = 0) {
    return send(GetMessage{{}, request, epoch, batch}, MessageType::get);
  }
  bool release(std::uint64_t lease) {
    struct {
      ReleaseMessage message;
      std::uint64_t lease;
    } out{{{sizeof out, MessageType::release, kVersion}, 1, 0}, lease};
    return send_bytes(&out, sizeof out);
  }

  /// The next message; nullopt at the end of the connection, or if nothing comes for ten seconds
  /// (or `milliseconds`).
  std::optional<Received> receive(int milliseconds = 10'000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, milliseconds) != 1) return std::nullopt;
    Received received;
    received.bytes.resize(kMaxMessage);
    PassedMessage message = receive_passed(fd_, received.bytes);
    if (message.size <= 0) return std::nullopt;
    received.bytes.resize(static_cast<std::size_t>(message.size));
    received.descriptors = std::move(message.descriptors);
    EXPECT_EQ(received.as<Header>().length, received.bytes.size());
    return received;
  }
  Received expect(MessageType type) {
    auto received = receive();
    if (!received) throw std::runtime_error("no message came");
    if (received->type() != type)
      throw std::runtime_error(
          "a message of type " + std::to_string(static_cast<int>(received->type())) +
          " came: " + received->text(std::min(sizeof(RefusedMessage), received->bytes.size())));
    return std::move(*received);
  }
  /// The server's reason when it ends the connection.
  std::string refused() {
    const Received received = expect(MessageType::refused);
    EXPECT_FALSE(receive().has_value()) << "the connection went on";
    return received.text(sizeof(RefusedMessage));
  }

 private:
  int fd_;
};

/// The int32 values of a batch's first tensor.
inline std::vector<std::int32_t> values_of(const Received& batch) {
  const auto message = batch.as<BatchMessage>();
  const auto memory = batch.as<MemoryRecord>(sizeof message);
  const auto tensor = batch.as<TensorRecord>(sizeof message + message.memory_count * sizeof memory);
  std::vector<std::int32_t> values(tensor.bytes / 4);
  if (::pread(batch.descriptors.at(0).get(), values.data(), tensor.bytes,
              static_cast<off_t>(tensor.offset)) != static_cast<ssize_t>(tensor.bytes))
    throw std::runtime_error("the batch's memory is too short");
  return values;
}

/// The value of FakeData in row `time`, column 0.
inline std::int32_t first_value(std::int64_t time) {
  return static_cast<std::int32_t>(1000 * (time / 4) + time % 4 * 6);
}

}  // namespace batchfs::handoff

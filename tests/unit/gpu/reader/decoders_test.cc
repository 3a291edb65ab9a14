// Mode client, the reader's side: how it handles the server's setups and programs. The decoder is
// simulated: it records its calls and ends programs when the test lets it.

#include "gpu/reader/decoders.h"

#include <algorithm>
#include <condition_variable>
#include <deque>

#include <gmock/gmock.h>

#include "gpu/handoff/messages.h"
#include "tests/unit/gpu/handoff/client.h"
#include "tests/unit/gpu/handoff/fake_device.h"

namespace batchfs::reader {
namespace decoders_test {

using namespace handoff;
using testing::ElementsAre;
using testing::HasSubstr;

/// Calls and results of all decoders of a test. One test at a time.
struct Decoding {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> setups, programs;
  int opened = 0, closed = 0, stopped = 0;
  std::uint64_t finished = 0;
  std::uint64_t may_finish = UINT64_MAX;  // programs up to this number
  std::vector<std::uint32_t> refused;     // by each program
  std::uint32_t refused_more = 0;         // counted, but not listed
  std::string open_fails, start_fails, finish_fails;
  ErrorCode code = ErrorCode::io;  // of these errors

  static Decoding* now;
  Decoding() { now = this; }
  ~Decoding() { now = nullptr; }

  template <class Value>
  Value read(Value Decoding::*member) {
    const std::lock_guard lock(mutex);
    return this->*member;
  }
  void set(const std::function<void(Decoding&)>& change) {
    const std::lock_guard lock(mutex);
    change(*this);
    changed.notify_all();
  }
};
Decoding* Decoding::now = nullptr;

struct FakeDecoder {
  std::vector<std::byte> batches = std::vector<std::byte>(256);
  bool stopped = false;
};

int say(const std::string& text, CudaFailure* failure) {
  failure->text[text.copy(failure->text, sizeof failure->text - 1)] = 0;
  failure->code = static_cast<std::uint32_t>(Decoding::now->code);
  return -1;
}

constexpr CudaDecoderTable kTable{
    .version = CudaDecoderTable::kVersion,
    .supports = [](int, CudaFailure*) { return 0; },
    .open = [](int, const void* setup, std::size_t size, void* staging, std::size_t staging_size,
               CudaFailure* failure) -> void* {
      Decoding& all = *Decoding::now;
      const std::lock_guard lock(all.mutex);
      if (!all.open_fails.empty()) {
        say(all.open_fails, failure);
        return nullptr;
      }
      all.setups.emplace_back(static_cast<const char*>(setup), size);
      const auto* bytes = static_cast<const std::byte*>(staging);  // all of it is mapped
      EXPECT_TRUE(std::all_of(bytes, bytes + staging_size,
                              [](std::byte byte) { return byte == std::byte{0}; }));
      ++all.opened;
      return new FakeDecoder;
    },
    .close =
        [](void* decoder) {
          const std::lock_guard lock(Decoding::now->mutex);
          ++Decoding::now->closed;
          delete static_cast<FakeDecoder*>(decoder);
        },
    .slots = [](void* decoder, std::uint64_t* size) -> void* {
      auto& batches = static_cast<FakeDecoder*>(decoder)->batches;
      *size = batches.size();
      return batches.data();
    },
    .start =
        [](void* decoder, const void* program, std::size_t size, CudaFailure* failure) {
          Decoding& all = *Decoding::now;
          const std::lock_guard lock(all.mutex);
          if (static_cast<FakeDecoder*>(decoder)->stopped) return say("stopped", failure);
          if (!all.start_fails.empty()) return say(all.start_fails, failure);
          all.programs.emplace_back(static_cast<const char*>(program), size);
          return 0;
        },
    .finish = [](void*, std::uint64_t number, std::uint32_t* refused, std::size_t most,
                 CudaFailure* failure) -> std::int64_t {
      Decoding& all = *Decoding::now;
      std::unique_lock lock(all.mutex);
      all.changed.wait(lock, [&] { return number <= all.may_finish; });
      if (!all.finish_fails.empty()) return say(all.finish_fails, failure);
      all.finished = number;
      for (std::size_t i = 0; i < std::min(most, all.refused.size()); ++i)
        refused[i] = all.refused[i];
      return static_cast<std::int64_t>(all.refused.size()) + all.refused_more;
    },
    .stop =
        [](void* decoder) {
          const std::lock_guard lock(Decoding::now->mutex);
          static_cast<FakeDecoder*>(decoder)->stopped = true;
          ++Decoding::now->stopped;
        },
};

int file_of(const std::string& text) {
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return fd;
}

/// The server's ends of a reader's sockets.
class Server {
 public:
  Server() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    channel_ = ends[0];
    decoders = std::make_unique<Decoders>(kTable, ends[1], std::make_shared<FakeDevice>());
  }
  ~Server() {
    decoders = nullptr;
    for (const int fd : {channel_, socket_})
      if (fd >= 0) ::close(fd);
  }

  template <class Message>
  static void send(int socket, Message message, MessageType type,
                   const std::vector<int>& descriptors) {
    message.header = {sizeof message, type, kVersion};
    EXPECT_TRUE(send_message(socket, std::as_bytes(std::span(&message, 1)), descriptors));
  }
  /// A valid setup, except for the changes by `change`.
  void set_up(
      std::uint64_t id, const std::string& text = "a setup",
      const std::function<void(SetupMessage&, std::vector<int>&)>& change = [](auto&, auto&) {}) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    if (socket_ >= 0) ::close(socket_);
    socket_ = ends[0];
    SetupMessage message{};
    message.id = id;
    message.setup_size = text.size();
    message.staging_size = 8192;
    std::vector<int> descriptors{file_of(text), file_of(std::string(8192, 0)), ends[1]};
    const std::vector<int> own = descriptors;
    change(message, descriptors);
    send(channel_, message, MessageType::setup, descriptors);
    for (const int fd : own) ::close(fd);
  }
  void program(std::uint64_t number, const std::string& text, std::uint64_t size) {
    const int fd = file_of(text);
    send(socket_, ProgramMessage{{}, number, size}, MessageType::program, {fd});
    ::close(fd);
  }
  void program(std::uint64_t number, const std::string& text = "a program") {
    program(number, text, text.size());
  }

  struct Ended {
    EndedMessage message;
    std::vector<std::uint32_t> refused;
  };
  /// The reader's report on the next program that ended; nullopt when it has closed the socket.
  std::optional<Ended> ended() {
    ReceivedMessage received;
    if (!receive_message(socket_, kMaxMessage, received)) return std::nullopt;
    Ended ended;
    EXPECT_GE(received.bytes.size(), sizeof ended.message);
    std::memcpy(&ended.message, received.bytes.data(), sizeof ended.message);
    EXPECT_EQ(ended.message.header.type, MessageType::ended);
    if (ended.message.number == 0) {
      failure = static_cast<ErrorCode>(ended.message.code);
      EXPECT_FALSE(receive_message(socket_, kMaxMessage, received)) << "the socket goes on";
      return std::nullopt;
    }
    ended.refused.resize((received.bytes.size() - sizeof ended.message) / sizeof(std::uint32_t));
    if (!ended.refused.empty())
      std::memcpy(ended.refused.data(), received.bytes.data() + sizeof ended.message,
                  ended.refused.size() * sizeof(std::uint32_t));
    return ended;
  }
  /// Waits for the series.
  std::shared_ptr<const DeviceMemory> memory(std::uint64_t id) {
    std::shared_ptr<const DeviceMemory> found;
    EXPECT_TRUE(eventually([&] { return (found = decoders->memory(id)) != nullptr; }));
    return found;
  }
  void hang_up() { ::close(std::exchange(socket_, -1)); }
  void hang_up_channel() { ::close(std::exchange(channel_, -1)); }
  int channel() const { return channel_; }
  int socket() const { return socket_; }

  Decoding decoding;
  std::unique_ptr<Decoders> decoders;
  std::optional<ErrorCode> failure;  // the reader's report before it closed a socket

 private:
  int channel_ = -1, socket_ = -1;
};

TEST(Decoders, RunProgramsInOrderAndSayWhenTheyHaveEnded) {
  Server server;
  server.set_up(7, "the setup");
  for (std::uint64_t number = 1; number <= 3; ++number)
    server.program(number, "program " + std::to_string(number));
  for (std::uint64_t number = 1; number <= 3; ++number) {
    const auto ended = server.ended();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->message.number, number);
    EXPECT_EQ(ended->message.count, 0u);
    EXPECT_TRUE(ended->refused.empty());
  }
  EXPECT_THAT(server.decoding.read(&Decoding::setups), ElementsAre("the setup"));
  EXPECT_THAT(server.decoding.read(&Decoding::programs),
              ElementsAre("program 1", "program 2", "program 3"));
  EXPECT_EQ(server.memory(7)->size(), 256u);
  EXPECT_EQ(server.decoders->memory(8), nullptr);
  EXPECT_EQ(server.decoders->why_failed(), "");
}

TEST(Decoders, ChunksThatWereRefusedAreNamed) {
  Server server;
  server.decoding.refused = {4, 9};
  server.set_up(1);
  server.program(1);
  EXPECT_THAT(server.ended()->refused, ElementsAre(4, 9));
  // More than a message can list: all are refused.
  server.decoding.set([](Decoding& d) {
    d.refused.assign(kMaxRefused, 3);
    d.refused_more = 1;
  });
  server.program(2);
  const auto all = server.ended();
  EXPECT_EQ(all->message.count, kAllRefused);
  EXPECT_TRUE(all->refused.empty());
  server.decoding.set([](Decoding& d) { d.refused_more = 0; });
  server.program(3);
  EXPECT_EQ(server.ended()->refused.size(), kMaxRefused);
}

TEST(Decoders, SetupsThatMakeNoSenseEndTheirSocketOnly) {
  const std::vector<std::function<void(SetupMessage&, std::vector<int>&)>> lies = {
      [](SetupMessage& m, auto&) { m.setup_size = 8; },  // its file is shorter
      [](SetupMessage& m, auto&) { m.setup_size = UINT64_MAX; },
      [](SetupMessage& m, auto&) { m.setup_size = std::uint64_t{1} << 40; },
      [](SetupMessage& m, auto&) { m.staging_size = 8193; },
      [](SetupMessage& m, auto&) { m.staging_size = UINT64_MAX; },
      [](SetupMessage& m, auto&) { m.staging_size = 0; },
      [](SetupMessage&, std::vector<int>& d) { d[0] = d[2]; },  // no file
      [](SetupMessage&, std::vector<int>& d) { d.pop_back(); },
      [](SetupMessage&, std::vector<int>& d) { d.clear(); },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    SCOPED_TRACE(i);
    Server server;
    server.set_up(1, "a setup", lies[i]);
    EXPECT_FALSE(server.ended());
    EXPECT_TRUE(eventually([&] { return !server.decoders->why_failed().empty(); }));
    EXPECT_EQ(server.decoders->memory(1), nullptr);
    // The next is a setup again.
    server.set_up(2);
    server.program(1);
    EXPECT_TRUE(server.ended());
    EXPECT_EQ(server.decoding.read(&Decoding::opened), 1);
  }
}

TEST(Decoders, WhatTheDecoderRefusesIsSaid) {
  Server server;
  server.decoding.open_fails = "the GPU is on fire";
  server.set_up(1);
  EXPECT_FALSE(server.ended());
  EXPECT_TRUE(eventually([&] { return !server.decoders->why_failed().empty(); }));
  EXPECT_THAT(server.decoders->why_failed(), HasSubstr("the GPU is on fire"));
  EXPECT_EQ(server.failure, ErrorCode::io);
  EXPECT_EQ(server.decoders->memory(1), nullptr);
}

TEST(Decoders, TheServerIsToldOfTooLittleMemory) {
  Server server;
  server.decoding.open_fails = "the GPU failed to allocate memory";
  server.decoding.code = ErrorCode::no_memory;
  server.set_up(1);
  EXPECT_FALSE(server.ended());
  EXPECT_EQ(server.failure, ErrorCode::no_memory);
  server.decoding.set([](Decoding& d) {
    d.open_fails = "";
    d.start_fails = "the GPU failed to allocate memory";
  });
  server.failure = std::nullopt;
  server.set_up(2);
  server.program(1);
  EXPECT_FALSE(server.ended());
  EXPECT_EQ(server.failure, ErrorCode::no_memory);
}

TEST(Decoders, OtherMessagesEndTheSocket) {
  Server server;
  server.set_up(1);
  Server::send(server.socket(), SetupMessage{}, MessageType::setup,
               {});  // longer than a program's message
  EXPECT_FALSE(server.ended());
  server.set_up(2);
  Server::send(server.socket(), ProgramMessage{}, MessageType::ended, {});
  EXPECT_FALSE(server.ended());
  EXPECT_THAT(server.decoders->why_failed(), HasSubstr("another type"));
  server.set_up(3);
  Server::send(server.socket(), ProgramMessage{{}, 1, 4}, MessageType::program, {});  // no bytes
  EXPECT_FALSE(server.ended());
  EXPECT_EQ(server.decoding.read(&Decoding::opened), 3);
  EXPECT_TRUE(server.decoding.read(&Decoding::programs).empty());
}

TEST(Decoders, ProgramsThatMakeNoSenseEndTheirSocketOnly) {
  Server server;
  std::uint64_t id = 0;
  const auto ends = [&](const std::function<void()>& say) {
    server.set_up(++id);
    say();
    return !server.ended().has_value();
  };
  EXPECT_TRUE(ends([&] { server.program(2); }));
  EXPECT_TRUE(ends([&] { server.program(0); }));
  EXPECT_TRUE(ends([&] { server.program(1, "short", 6); }));
  EXPECT_TRUE(ends([&] { server.program(1, "short", UINT64_MAX); }));
  EXPECT_TRUE(ends([&] { server.program(1, "short", (std::uint64_t{1} << 31) + 1); }));
  EXPECT_TRUE(server.decoding.read(&Decoding::programs).empty());
  EXPECT_FALSE(ends([&] { server.program(1); }));
  EXPECT_FALSE(server.decoders->why_failed().empty());
}

TEST(Decoders, APlanThatTheDeviceCannotRunEndsTheSeries) {
  Server server;
  server.set_up(1);
  server.decoding.set([](Decoding& d) { d.start_fails = "no such kernel"; });
  server.program(1);
  EXPECT_FALSE(server.ended());
  EXPECT_THAT(server.decoders->why_failed(), HasSubstr("no such kernel"));
  server.decoding.set([](Decoding& d) {
    d.start_fails = "";
    d.finish_fails = "an illegal address";
  });
  server.set_up(2);
  server.program(1);
  EXPECT_FALSE(server.ended());
  EXPECT_THAT(server.decoders->why_failed(), HasSubstr("no such kernel")) << "the first cause";
}

TEST(Decoders, ALaterSeriesTakesTheEarliersPlaceButNotItsBatches) {
  Server server;
  server.set_up(3);
  std::shared_ptr<const DeviceMemory> batch = server.memory(3);
  server.set_up(5);
  ASSERT_NE(server.memory(5), nullptr);
  EXPECT_EQ(server.decoders->memory(3), nullptr) << "let go of";
  EXPECT_EQ(server.decoding.read(&Decoding::closed), 0) << "a batch is held";
  std::memset(batch->data(), 1, batch->size());
  batch = nullptr;
  EXPECT_TRUE(eventually([&] { return server.decoding.read(&Decoding::closed) == 1; }));
  EXPECT_NE(server.decoders->memory(5), nullptr);
}

TEST(Decoders, TheirEndWaitsForWhatRuns) {
  Server server;
  server.decoding.may_finish = 0;
  server.set_up(1);
  server.program(1);
  server.program(2);
  EXPECT_TRUE(eventually([&] { return server.decoding.read(&Decoding::programs).size() == 2; }));
  std::thread end([&] { server.decoders = nullptr; });
  EXPECT_TRUE(eventually([&] { return server.decoding.read(&Decoding::stopped) > 0; }));
  EXPECT_EQ(server.decoding.read(&Decoding::closed), 0);
  server.decoding.set([](Decoding& d) { d.may_finish = UINT64_MAX; });
  end.join();
  EXPECT_EQ(server.decoding.read(&Decoding::finished), 2u);
  EXPECT_EQ(server.decoding.read(&Decoding::closed), 1);
}

TEST(Decoders, TheServerMayGoAtAnyMoment) {
  for (const int step : {0, 1, 2, 3}) {
    SCOPED_TRACE(step);
    Server server;
    if (step > 0) server.set_up(1);
    std::shared_ptr<const DeviceMemory> batch;
    if (step > 1) batch = server.memory(1);
    if (step > 2) server.program(1);
    server.hang_up_channel();
    if (step > 0) server.hang_up();
    if (batch != nullptr) {
      std::memset(batch->data(), 1, batch->size());
      EXPECT_TRUE(eventually([&] { return server.decoding.read(&Decoding::stopped) > 0; }));
    }
    server.decoders = nullptr;
    EXPECT_EQ(server.decoding.read(&Decoding::closed),
              server.decoding.read(&Decoding::opened) - (batch != nullptr ? 1 : 0));
    batch = nullptr;
    EXPECT_EQ(server.decoding.read(&Decoding::closed), server.decoding.read(&Decoding::opened));
  }
}

}  // namespace decoders_test
}  // namespace batchfs::reader

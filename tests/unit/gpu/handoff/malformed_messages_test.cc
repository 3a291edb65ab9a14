// Messages that no reader of ours sends: refused with a reason, and the server lives on.

#include <random>

#include <fcntl.h>

#include <gmock/gmock.h>

#include "engine/base/descriptor_passing.h"
#include "gpu/handoff/server.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace malformed_messages_test {

using testing::HasSubstr;

constexpr const char* kView =
    R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "none"}})";

/// Sends one message to a server that has greeted the reader, which must refuse it and live on.
class Malformed : public testing::Test {
 protected:
  template <class Message>
  std::string answer(Message message, MessageType type, std::size_t size = sizeof(Message),
                     std::int64_t length = -1) {
    RawClient client(served_.server->path());
    client.hello();
    client.expect(MessageType::welcome);
    std::vector<std::byte> bytes(std::max(size, sizeof message));
    message.header = {
        static_cast<std::uint32_t>(length < 0 ? static_cast<std::int64_t>(size) : length), type,
        kVersion};
    std::memcpy(bytes.data(), &message, sizeof message);
    client.send_bytes(bytes.data(), size);
    return client.refused();
  }
  Served served_{{kView}};
};

TEST_F(Malformed, LengthsThatDoNotFit) {
  EXPECT_THAT(answer(StartMessage{}, MessageType::start, 8), HasSubstr("length"));
  EXPECT_THAT(answer(StartMessage{}, MessageType::start, sizeof(StartMessage) + 8),
              HasSubstr("length"));
  EXPECT_THAT(answer(StartMessage{}, MessageType::start, sizeof(StartMessage), 8),
              HasSubstr("length"));
  EXPECT_THAT(answer(StartMessage{}, MessageType::start, 3), HasSubstr("short"));
  EXPECT_THAT(answer(ReleaseMessage{{}, 5, 0}, MessageType::release), HasSubstr("length"));
  EXPECT_THAT(answer(StateMessage{}, MessageType::state, sizeof(StateMessage), 8),
              HasSubstr("length"));
  EXPECT_THAT(answer(ReleaseMessage{{}, UINT32_MAX, 0}, MessageType::release), HasSubstr("length"));
  EXPECT_THAT(answer(ReleaseMessage{{}, 0, 0}, MessageType::release, 60'000),
              HasSubstr("too long"));
}

TEST_F(Malformed, TypesThatThereAreNot) {
  for (const int type : {0, 7, 64, 65, 68, 99, 65535})
    EXPECT_THAT(answer(StartMessage{}, static_cast<MessageType>(type)), HasSubstr("type")) << type;
  EXPECT_THAT(answer(HelloMessage{}, MessageType::hello), HasSubstr("once"));
}

TEST_F(Malformed, NumbersOutOfRange) {
  const auto start = [&](std::int64_t epoch, std::int64_t first, std::int64_t step,
                         std::int64_t count, std::uint32_t depth, std::uint64_t stream = 1) {
    return answer(StartMessage{{}, stream, epoch, first, step, count, depth, 0},
                  MessageType::start);
  };
  EXPECT_THAT(start(0, 0, 1, 11, 1), HasSubstr("10 batches"));
  EXPECT_THAT(start(0, -1, 1, 1, 1), HasSubstr("10 batches"));
  EXPECT_THAT(start(0, 0, 1, INT64_MAX, 1), HasSubstr("10 batches"));
  EXPECT_THAT(start(0, 9, UINT32_MAX, INT64_MAX, 1), HasSubstr("10 batches"));
  EXPECT_THAT(start(0, 0, 0, 1, 1), HasSubstr("step"));
  EXPECT_THAT(start(0, 0, INT64_MAX, 1, 1), HasSubstr("step"));
  EXPECT_THAT(start(0, 0, 1, -1, 1), HasSubstr("count"));
  EXPECT_THAT(start(-1, 0, 1, 1, 1), HasSubstr("epoch"));
  EXPECT_THAT(start(INT64_MAX, 0, 1, 1, 1), HasSubstr("epoch"));
  EXPECT_THAT(start(0, 0, 1, 1, 0), HasSubstr("depth"));
  EXPECT_THAT(start(0, 0, 1, 1, 65), HasSubstr("depth"));
  EXPECT_THAT(start(0, 0, 1, 1, 1, 0), HasSubstr("number"));
  EXPECT_THAT(answer(WantMessage{{}, 1, 0, 0, 0}, MessageType::want), HasSubstr("depth"));
  EXPECT_THAT(answer(GetMessage{{}, 0, 0, 0}, MessageType::get), HasSubstr("number"));
}

TEST_F(Malformed, LeasesThatAreNotHeld) {
  RawClient client(served_.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.get(1, 0);
  const std::uint64_t lease = client.expect(MessageType::batch).as<BatchMessage>().lease;
  client.release(lease);
  client.release(lease);
  EXPECT_THAT(client.refused(), HasSubstr("not held"));
  EXPECT_TRUE(eventually([&] { return is_idle(*served_.server); }));
}

TEST_F(Malformed, TheFirstMessageIsHello) {
  RawClient client(served_.server->path());
  client.get(1, 0);
  EXPECT_THAT(client.refused(), HasSubstr("Hello"));
}

TEST_F(Malformed, AnyBytesAtAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    RawClient client(served_.server->path());
    if (round % 2 == 0) client.hello();
    for (int i = 0; i < 5; ++i) {
      std::vector<unsigned char> bytes(random() % 400 + 1);
      for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
      // Half of them get past the header.
      if (random() % 2 == 0 && bytes.size() >= sizeof(Header)) {
        const Header header{static_cast<std::uint32_t>(bytes.size()),
                            static_cast<MessageType>(1 + random() % 5), kVersion};
        std::memcpy(bytes.data(), &header, sizeof header);
      }
      if (!client.send_bytes(bytes.data(), bytes.size())) break;
    }
  }
  EXPECT_TRUE(eventually([&] { return is_idle(*served_.server); }));
  RawClient client(served_.server->path());
  client.hello();
  client.expect(MessageType::welcome);
}

TEST_F(Malformed, DescriptorsThatAReaderSendsAreDropped) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
  };
  RawClient client(served_.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  const int before = open_files();
  GetMessage get{{sizeof get, MessageType::get, kVersion}, 1, 0, 99};
  for (int i = 0; i < 20; ++i) {
    const int fd = client.fd();
    ASSERT_GT(send_passing(fd, std::as_bytes(std::span(&get, 1)), {&fd, 1}), 0);
    client.expect(MessageType::failed);
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace malformed_messages_test
}  // namespace batchfs::handoff

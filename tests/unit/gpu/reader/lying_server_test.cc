// The reader against servers that lie.
#include <array>
#include <optional>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/descriptor_passing.h"
#include "engine/base/system_error.h"
#include "gpu/reader/labels.h"
#include "gpu/reader/socket_source.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::reader {
namespace lying_server_test {

using namespace handoff;

constexpr ReadingRecord kReading{7, 3};

/// One end of a connection for the reader, the other for a test that plays the server.
class LyingServer {
 public:
  LyingServer() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
    leaving_ = std::thread([this] {
      pollfd left{ends_[1], POLLRDHUP, 0};
      ::poll(&left, 1, -1);
      ::shutdown(ends_[1], SHUT_RDWR);
    });
  }
  ~LyingServer() {
    ::shutdown(ends_[1], SHUT_RDWR);
    leaving_.join();
    ::close(ends_[1]);
  }

  void send(std::vector<std::byte> bytes, const std::vector<int>& descriptors = {}) {
    EXPECT_GT(send_passing(ends_[1], bytes, descriptors), 0);
  }
  template <class... Parts>
  static std::vector<std::byte> message(MessageType type, const Parts&... parts) {
    std::vector<std::byte> bytes;
    const auto add = [&](const auto& part) {
      const auto* begin = reinterpret_cast<const std::byte*>(&part);
      bytes.insert(bytes.end(), begin, begin + sizeof part);
    };
    (add(parts), ...);
    const Header header{static_cast<std::uint32_t>(bytes.size()), type, kVersion};
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }

  /// Reads the reader's message.
  void listen() {
    char bytes[1024];
    while (::recv(ends_[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
  }

  /// Greets as a server of one tensor "x" of int32, 2 by 3; of version 4 with the given
  /// coordinates, else of version 1.
  std::unique_ptr<SocketSource> greeted(
      const std::optional<CoordinatesRecord>& coordinates = std::nullopt,
      const std::string& labels = "", const std::string& members = "") {
    const std::string
        schema =
            R"({"view": "v", "samples": 8, "batch_size": 2, "batches": 4, "epochs": 1, "formats": ["npy"],
      "tensors": [{"name": "x", "dtype": "int32", "shape": [2, 3], "dims": ["sample", "a"]}])" +
            members + "}",
        view = "{}";
    const int texts = ::memfd_create("texts", 0);
    std::string both = schema + view;
    if (coordinates) both.resize((both.size() + 7) / 8 * 8);
    both += labels;
    EXPECT_EQ(::write(texts, both.data(), both.size()), static_cast<ssize_t>(both.size()));
    WelcomeMessage welcome{};
    welcome.mode = Mode::shm;
    welcome.schema_length = schema.size();
    welcome.view_length = view.size();
    welcome.samples = 8;
    welcome.batch_size = 2;
    welcome.batches = 4;
    welcome.tensor_count = 1;
    auto said = coordinates ? message(MessageType::welcome, welcome, *coordinates, kReading)
                            : message(MessageType::welcome, welcome);
    if (!coordinates) reinterpret_cast<Header*>(said.data())->version = 1;
    send(std::move(said), {texts});
    ::close(texts);
    return std::make_unique<SocketSource>(std::exchange(ends_[0], -1), SocketSource::Options{},
                                          nullptr);
  }

  static int memory(std::uint64_t size) {
    const int fd = ::memfd_create("batch", 0);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
    return fd;
  }

 private:
  int ends_[2] = {-1, -1};
  std::thread leaving_;  // ends the connection when the reader does
};

TEST(LyingServer, ABatchAsItShouldBe) {
  LyingServer server;
  const auto source = server.greeted();
  const int fd = LyingServer::memory(24);
  BatchMessage batch{};
  batch.lease = 5;
  batch.request = 1;
  batch.memory_count = batch.tensor_count = 1;
  batch.dim_count = 2;
  const std::int64_t dims[] = {2, 3};
  server.send(LyingServer::message(
                  MessageType::batch, batch,
                  MemoryRecord{1, 24, MemoryKind::host, kMemoryAttached | kMemoryTransient},
                  TensorRecord{0, 24, 0, 2}, dims),
              {fd});
  ::close(fd);
  EXPECT_EQ(source->get(0, 0, nullptr)->tensors.at(0).bytes, 24u);
}

struct Lie {
  BatchMessage batch{
      .lease = 5, .request = 1, .samples = 2, .memory_count = 1, .tensor_count = 1, .dim_count = 2};
  MemoryRecord memory{1, 24, MemoryKind::host, kMemoryAttached | kMemoryTransient};
  TensorRecord tensor{0, 24, 0, 2};
  std::int64_t dims[2] = {2, 3};
};

/// Is a batch with this description refused?
template <class Change>
bool refuses(Change&& change) {
  Lie lie;
  change(lie);
  LyingServer server;
  const auto source = server.greeted();
  const int fd = LyingServer::memory(24);
  server.send(LyingServer::message(MessageType::batch, lie.batch, lie.memory, lie.tensor, lie.dims),
              {fd});
  ::close(fd);
  try {
    source->get(0, 0, nullptr);
    return false;
  } catch (const Error&) {
    return true;
  } catch (const Lost&) {
    return true;
  }
}

TEST(LyingServer, BatchesThatLieOutsideOfTheirMemoryAreRefused) {
  EXPECT_FALSE(refuses([](Lie&) {}));
  EXPECT_TRUE(refuses([](Lie& l) { l.memory.size = 25; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.memory.size = UINT64_MAX; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.memory.size = 20; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.memory.kind = MemoryKind::device_fd; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.memory.flags = 0; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.tensor.offset = 1; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.tensor.offset = UINT64_MAX - 8; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.tensor.bytes = 20; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.tensor.memory = 1; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.tensor.rank = 3; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.tensor.rank = UINT32_MAX; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.dims[0] = -2; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.dims[1] = INT64_MAX; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.batch.dim_count = UINT32_MAX; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.batch.memory_count = 2; }));
  EXPECT_TRUE(refuses([](Lie& l) { l.batch.tensor_count = 0; }));
}

TEST(LyingServer, MemoryThatComesAgainIsMappedOnce) {
  LyingServer server;
  const auto source = server.greeted();
  const int fd = LyingServer::memory(48);
  const std::int64_t dims[] = {2, 3};
  BatchMessage batch{};
  batch.memory_count = batch.tensor_count = 1;
  batch.dim_count = 2;
  const std::byte* first = nullptr;
  for (const std::uint64_t request : {1, 2}) {
    batch.lease = batch.request = request;
    server.send(LyingServer::message(
                    MessageType::batch, batch,
                    MemoryRecord{9, 48, MemoryKind::host, request == 1 ? kMemoryAttached : 0},
                    TensorRecord{24 * (request - 1), 24, 0, 2}, dims),
                request == 1 ? std::vector<int>{fd} : std::vector<int>{});
    const auto got = source->get(0, 0, nullptr);
    if (request == 1)
      first = got->tensors[0].data;
    else
      EXPECT_EQ(got->tensors[0].data, first + 24);
  }
  ::close(fd);
}

/// A coordinate "time" of eight numbers, which windows slide along, and a dimension "x" without.
constexpr const char* kLabelled =
    R"(, "window": [{"dim": "time", "size": 1}, {"dim": "x", "size": 1, "positions": {"first": 10, "step": 5, "size": 4}}],
        "coordinates": [{"name": "time", "dims": ["time"], "dtype": "float64", "size": 8}])";

std::string eight_numbers(CoordinateRecord record = {sizeof(CoordinateRecord), 64}) {
  std::string bytes(reinterpret_cast<const char*>(&record), sizeof record);
  for (double value = 0.5; value < 8; ++value)
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

TEST(LyingServer, CoordinatesOfAnotherLengthAreRefused) {
  for (const CoordinatesRecord& record :
       {CoordinatesRecord{80, 2, 2}, CoordinatesRecord{80, 1, 1}, CoordinatesRecord{15, 1, 2},
        CoordinatesRecord{88, 1, 2}, CoordinatesRecord{UINT64_MAX, 1, 2},
        CoordinatesRecord{UINT64_MAX - 4096, 1, 2}}) {
    LyingServer server;
    const auto open = [&] {
      try {
        server.greeted(record, eight_numbers(), kLabelled);
        return false;
      } catch (const Error&) {
        return true;
      } catch (const Lost&) {
        return true;
      }
    };
    EXPECT_TRUE(open()) << record.length << " " << record.count << " " << record.window_count;
  }
  for (const CoordinateRecord& record :
       {CoordinateRecord{16, 56}, CoordinateRecord{24, 64}, CoordinateRecord{UINT64_MAX, 64},
        CoordinateRecord{80, 8}, CoordinateRecord{16, UINT64_MAX}}) {
    LyingServer server;
    EXPECT_THROW(server.greeted(CoordinatesRecord{80, 1, 2}, eight_numbers(record), kLabelled),
                 Error)
        << record.offset << " " << record.bytes;
  }
  LyingServer server;
  const auto source = server.greeted(CoordinatesRecord{80, 1, 2}, eight_numbers(), kLabelled);
  EXPECT_EQ(source->reading().session, kReading.session);
  EXPECT_EQ(source->reading().number, kReading.number);
}

TEST(LyingServer, WindowsThatDoNotFitAreRefused) {
  using Values = std::vector<std::int64_t>;
  const Values good{5, 1, 7, 0, 2, 3};
  const auto labelled = [&](const WindowsRecord& record, std::vector<std::int64_t> values,
                            int attached) {
    LyingServer server;
    const auto source = server.greeted(CoordinatesRecord{80, 1, 2}, eight_numbers(), kLabelled);
    const int fd = LyingServer::memory(24);
    BatchMessage batch{};
    batch.lease = batch.request = 1;
    batch.samples = 2;
    batch.memory_count = batch.tensor_count = 1;
    batch.dim_count = 2;
    auto said = LyingServer::message(
        MessageType::batch, batch,
        MemoryRecord{1, 24, MemoryKind::host, kMemoryAttached | kMemoryTransient},
        TensorRecord{0, 24, 0, 2}, std::array<std::int64_t, 2>{2, 3}, record);
    const auto* begin = reinterpret_cast<const std::byte*>(values.data());
    said.insert(said.end(), begin, begin + values.size() * sizeof values[0]);
    reinterpret_cast<Header*>(said.data())->length = static_cast<std::uint32_t>(said.size());
    server.send(std::move(said),
                attached >= 0 ? std::vector<int>{fd, attached} : std::vector<int>{fd});
    ::close(fd);
    std::shared_ptr<Batch> got;
    try {
      got = source->get(0, 0, nullptr);
    } catch (const Error&) {
    } catch (const Lost&) {
    }
    return got;
  };
  const auto batch = labelled({2, 0}, good, -1);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(windows_of(*batch), good);
  EXPECT_EQ(label_of(*batch, 0, "time").number, 7.5);
  EXPECT_EQ(label_of(*batch, 1, "time").number, 2.5);
  EXPECT_EQ(label_of(*batch, 0, "x").integer, 10);
  EXPECT_EQ(label_of(*batch, 1, "x").integer, 25);
  EXPECT_EQ(label_of(*batch, 1, "x").type, Label::Type::position);
  EXPECT_THROW(label_of(*batch, 2, "x"), Error);
  EXPECT_THROW(label_of(*batch, -1, "x"), Error);
  EXPECT_THROW(label_of(*batch, 0, "y"), Error);

  for (const WindowsRecord& record : {WindowsRecord{3, 0}, WindowsRecord{1, 0}, WindowsRecord{2, 1},
                                      WindowsRecord{UINT32_MAX, 0}})
    EXPECT_EQ(labelled(record, good, -1), nullptr) << record.samples << record.attached;
  EXPECT_EQ(labelled({2, 0}, {5, 1, 7, 0, 2}, -1), nullptr);
  EXPECT_EQ(labelled({2, 0}, {5, 1, 7, 0, 2, 3, 4}, -1), nullptr);
  for (const Values& wrong : {Values{-1, 1, 7, 0, 2, 3}, Values{5, 1, 8, 0, 2, 3},
                              Values{5, 1, 7, 4, 2, 3}, Values{5, 1, -1, 0, 2, 3}})
    EXPECT_EQ(labelled({2, 0}, wrong, -1), nullptr) << wrong[0] << " " << wrong[2];
  // In a memory file, which may be too short.
  const int file = ::memfd_create("windows", 0);
  EXPECT_EQ(::write(file, good.data(), 48), 48);
  const auto attached = labelled({2, 1}, {}, file);
  ASSERT_NE(attached, nullptr);
  EXPECT_EQ(windows_of(*attached), good);
  EXPECT_EQ(labelled({2, 1}, good, file), nullptr);
  EXPECT_EQ(::ftruncate(file, 40), 0);
  EXPECT_EQ(labelled({2, 1}, {}, file), nullptr);
  ::close(file);
}

TEST(LyingServer, AnyBytesAtAllAreAnErrorAndLeaveNoDescriptors) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
  };
  LyingServer server;
  const auto source = server.greeted();
  const int before = open_files();
  const int fd = LyingServer::memory(24);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> bytes(sizeof(Header) + random() % 200);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    const MessageType types[] = {MessageType::batch, MessageType::failed, MessageType::end,
                                 MessageType::refused, MessageType::welcome};
    const Header header{static_cast<std::uint32_t>(bytes.size()), types[random() % 5], kVersion};
    std::memcpy(bytes.data(), &header, sizeof header);
    server.send(bytes, random() % 2 == 0 ? std::vector<int>{fd} : std::vector<int>{});
    // Messages of no stream are skipped: an answer that ends the call follows.
    FailedMessage failed{};
    failed.request = static_cast<std::uint64_t>(i + 1);
    server.listen();
    server.send(LyingServer::message(MessageType::failed, failed));
    try {
      source->get(0, 0, nullptr);
      FAIL();
    } catch (const Error&) {
    } catch (const Lost&) {
    }
  }
  ::close(fd);
  EXPECT_EQ(open_files(), before);
}

}  // namespace lying_server_test
}  // namespace batchfs::reader

// The reader against the server.
#include "gpu/reader/reader.h"

#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/descriptor_passing.h"
#include "engine/base/system_error.h"
#include "gpu/handoff/connect.h"
#include "gpu/reader/labels.h"
#include "gpu/reader/socket_source.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::reader {
namespace reader_test {

using namespace handoff;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr const char* kView =
    R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "none"}})";

TEST(Reader, ReadsASeriesAndSingleBatches) {
  Served served({kView});
  const auto reader = Reader::open({.place = served.server->path(), .rank = 1, .world = 3});
  EXPECT_EQ(reader->mode(), "shm");
  reader->start({.epoch = 2, .done = 2});
  EXPECT_EQ(reader->left(), 3);
  std::vector<std::int64_t> numbers;
  while (const auto batch = reader->next()) {
    EXPECT_EQ(batch->epoch, 2);
    numbers.push_back(batch->number);
    std::int32_t first;
    std::memcpy(&first, batch->tensors.at(0).data, 4);
    EXPECT_EQ(first, first_value(4 * batch->number));
    EXPECT_EQ(reader->get(0, 5)->number, 5);
  }
  EXPECT_THAT(numbers, testing::ElementsAre(3, 6, 9));
  EXPECT_EQ(reader->next(), nullptr);
}

TEST(Reader, ASocketHasNoFiles) {
  Served served({kView});
  EXPECT_THROW(Reader::open({.place = served.server->path(), .mode = "files"}), Error);
}

TEST(Reader, WorkersShareARanksBatches) {
  Served served({kView});
  std::vector<std::int64_t> merged(10, -1);
  for (std::int64_t worker = 0; worker < 3; ++worker) {
    const auto reader = Reader::open({.place = served.server->path()});
    const Position position{.done = 1, .worker = worker, .workers = 3};
    EXPECT_EQ(reader->count(position), 3);
    reader->start(position);
    for (std::int64_t i = 0; const auto batch = reader->next(); ++i)
      merged[static_cast<std::size_t>(1 + worker + 3 * i)] = batch->number;
  }
  EXPECT_THAT(merged, testing::ElementsAre(-1, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(Reader, PositionsThatThereAreNot) {
  Served served({kView});
  const auto reader = Reader::open({.place = served.server->path()});
  for (const Position& wrong :
       {Position{.epoch = -1}, Position{.done = 11}, Position{.done = -1}, Position{.worker = 1},
        Position{.workers = 0}, Position{.worker = -1}})
    EXPECT_THROW(reader->start(wrong), Error);
  EXPECT_THROW(reader->next(), Error);
  EXPECT_THROW(reader->get(0, 10), Error);
  EXPECT_THROW(reader->get(-1, 0), Error);
}

/// Accepts no connection, like a server that ends. Calls `ends` when one waits, and closes.
class EndingServer {
 public:
  explicit EndingServer(const std::string& path, std::function<void()> ends = nullptr)
      : listener_(path), thread_([this, ends = std::move(ends)] {
          pollfd waiting{listener_.fd(), POLLIN, 0};
          ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
          if (ends) ends();
          listener_.close();
        }) {}
  ~EndingServer() { thread_.join(); }

 private:
  Listener listener_;
  std::thread thread_;
};

TEST(Reader, OpensAtTheSuccessorOfAServerThatEnds) {
  Served served({kView});
  const std::string path = served.server->path(), successor = path + ".next";
  ASSERT_EQ(std::rename(path.c_str(), successor.c_str()), 0);
  const EndingServer ending(path, [&] { std::rename(successor.c_str(), path.c_str()); });
  EXPECT_EQ(Reader::open({.place = path})->get(0, 5)->number, 5);
}

TEST(Reader, ContinuesAtTheSuccessorOfAServerThatEnds) {
  Served served({kView}), next({kView});
  const std::string path = served.server->path();
  const auto reader = Reader::open({.place = path});
  reader->start({});
  EXPECT_EQ(reader->next()->number, 0);
  served.server = nullptr;
  {
    const EndingServer ending(path,
                              [&] { std::rename(next.server->path().c_str(), path.c_str()); });
    for (const std::int64_t number : {1, 2, 3}) EXPECT_EQ(reader->next()->number, number);
    EXPECT_EQ(reader->get(0, 5)->number, 5);
  }
  ::unlink(path.c_str());
}

TEST(Reader, LeavesNoServerThatEndsWithItToTheNextReader) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> unused = false;
    Served served({kView}, 64 << 20,
                  {.on_unused = [&unused] { unused = true; }, .first_reader_time = 60s});
    const std::string path = served.server->path();
    auto reader = Reader::open({.place = path});
    reader->start({});
    auto batch = reader->next();
    reader = nullptr;
    EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "the batch holds the connection";
    batch = nullptr;
    EXPECT_TRUE(unused);
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    EXPECT_LT(connect_to(path), 0);
  }
}

TEST(Reader, AForkedProcessLeavesTheConnectionToItsParent) {
  Served served({kView}, 64 << 20, {.on_unused = [] {}, .first_reader_time = 60s});
  auto reader = Reader::open({.place = served.server->path()});
  const pid_t child = ::fork();
  if (child == 0) {
    reader = nullptr;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(reader->get(0, 5)->number, 5);
}

TEST(Reader, FindsNobodyAfterAServerThatEnds) {
  const std::string directory = temporary_directory(), path = directory + "/s";
  {
    const EndingServer ending(path);
    try {
      Reader::open({.place = path});
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(describe_system_error(ENOENT)));
    }
  }
  ::rmdir(directory.c_str());
}

TEST(Reader, GivesUpWhereEveryConnectionIsClosed) {
  const std::string directory = temporary_directory(), path = directory + "/s";
  {
    Listener listener(path);
    std::atomic<int> connections = 0;
    std::thread closing([&] {
      for (;;) {
        pollfd waiting{listener.fd(), POLLIN, 0};
        if (::poll(&waiting, 1, 60'000) != 1) return;
        ::close(::accept(listener.fd(), nullptr, nullptr));
        if (++connections > 16) return;  // the test's own
      }
    });
    EXPECT_THROW(Reader::open({.place = path}), Error);
    EXPECT_EQ(connections, 16);
    ::close(connect_to(path));
    closing.join();
  }
  ::rmdir(directory.c_str());
}

}  // namespace reader_test
}  // namespace batchfs::reader

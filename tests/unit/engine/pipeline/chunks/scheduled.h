#pragma once
// A scheduler over the chunks of a fake store, and readers of boxes of them.

#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/chunks/chunk_scheduler.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs::scheduled {

inline constexpr std::int64_t kSteps = 4, kWidth = 6;
inline const Box kWhole{{0, 0}, {kSteps, kWidth}};

/// Some boxes of some chunks, read one after the other into `out`.
class Reading {
 public:
  struct Piece {
    std::int64_t chunk;
    std::vector<Box> boxes;
  };

  Reading(const std::shared_ptr<const Array>& array, const std::vector<Piece>& pieces,
          Urgency urgency = kReaderWaits, bool started = true)
      : assembly(std::make_shared<Assembly>()), pieces_(pieces) {
    std::int64_t elements = 0;
    for (const Piece& piece : pieces)
      for (const Box& box : piece.boxes) elements += box.elements();
    const auto out =
        std::make_shared<std::vector<std::int32_t>>(static_cast<std::size_t>(elements), -1);
    auto* at = reinterpret_cast<std::byte*>(out->data());
    for (const Piece& piece : pieces) {
      assembly->uses.push_back({array, piece.chunk,
                                static_cast<std::uint32_t>(assembly->parts.size()),
                                static_cast<std::uint32_t>(piece.boxes.size())});
      for (const Box& box : piece.boxes) {
        assembly->parts.push_back({box, at, c_strides(box.shape, 4), nullptr});
        at += box.elements() * 4;
      }
    }
    assembly->memory = out;
    assembly->urgency = urgency;
    assembly->started = started;
    const auto promise = std::make_shared<std::promise<std::vector<std::int32_t>>>();
    result_ = promise->get_future();
    assembly->finished = [promise, out](std::exception_ptr error) {
      if (error)
        promise->set_exception(error);
      else
        promise->set_value(*out);
    };
  }

  bool is_done() const {
    return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  /// Waits for the end, and compares.
  void expect_values() {
    ASSERT_EQ(result_.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    std::vector<std::int32_t> expected;
    for (const Piece& piece : pieces_)
      for (const Box& box : piece.boxes)
        for (std::int64_t t = 0; t < box.shape[0]; ++t)
          for (std::int64_t x = 0; x < box.shape[1]; ++x)
            expected.push_back(static_cast<std::int32_t>(
                1000 * piece.chunk + (box.start[0] + t) * kWidth + box.start[1] + x));
    EXPECT_EQ(result_.get(), expected);
  }
  Error expect_error() {
    EXPECT_EQ(result_.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    try {
      result_.get();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return Error(ErrorCode::internal, "no error");
  }

  const std::shared_ptr<Assembly> assembly;

 private:
  const std::vector<Piece> pieces_;
  std::future<std::vector<std::int32_t>> result_;
};

struct Scheduled {
  explicit Scheduled(bool remote, const std::string& filters = kWholeChunks, int threads = 2,
                     std::int64_t steps = kSteps, const std::string& compressor = "null")
      : data(10, steps, kWidth, filters, compressor), executor(threads) {
    data.store->asynchronous = remote;
    view = data.view(R"({"window": {"time": 1}, "batch": 1})");
    array = view->variables()[0]->array;
  }
  ~Scheduled() { stop(); }
  void stop() {
    scheduler.interrupt();
    data.store->stop();
    scheduler.wait();
    executor.stop();
  }

  FakeData data;
  std::shared_ptr<const View> view;
  std::shared_ptr<const Array> array;
  Log log;
  Budget budget{1 << 20};
  Counters counters;
  ChunkCache cache{counters};
  Executor executor;
  Trace trace;
  ChunkScheduler scheduler{executor, budget, cache, counters, trace, log};
};

}  // namespace batchfs::scheduled

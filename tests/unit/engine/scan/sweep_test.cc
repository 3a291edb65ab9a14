#include "engine/scan/sweep.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "engine/base/log.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace sweep_test {

// FakeData(4, 3, 5): "v" (time 12, x 5) in 4 chunks of 3 times; element i of chunk c is 1000 c + i.

std::int64_t value_at(std::int64_t time, std::int64_t x) {
  return 1000 * (time / 3) + time % 3 * 5 + x;
}

TEST(Sweep, EverySelectedElementIsInOnePiece) {
  const FakeData data(4, 3, 5);
  const Positions times = Positions::list({7, 1, 2, 1, 11}), xs = Positions::list({4, 0, 2});
  const Variable& variable = data.dataset->variable("v");
  const Sweep sweep(variable, {&times, &xs});
  EXPECT_EQ(sweep.pieces(), 3);  // chunk 1 is not touched
  EXPECT_EQ(sweep.indices(0), (std::vector<std::int64_t>{1, 2, 7, 11}));
  Log log;
  Engine engine({.threads = 3, .memory = 1 << 20, .prefetch = false}, log);
  std::mutex mutex;
  std::multiset<std::int64_t> seen;
  std::int64_t last = 0;
  sweep.read(
      engine,
      [&](std::int64_t, const Sweep::Piece& piece, std::shared_ptr<const Buffer> values) {
        const std::lock_guard lock(mutex);
        const auto* numbers = reinterpret_cast<const double*>(values->data());
        std::int64_t rank = piece.axes[0].first;
        for (std::int64_t t : piece.axes[0].indices) {
          EXPECT_EQ(sweep.indices(0)[static_cast<std::size_t>(rank++)], piece.box.start[0] + t);
          for (std::int64_t x : piece.axes[1].indices) {
            const double value = numbers[t * piece.box.shape[1] + x];
            EXPECT_EQ(value, value_at(piece.box.start[0] + t, piece.box.start[1] + x));
            seen.insert(static_cast<std::int64_t>(value));
          }
        }
      },
      [&](std::int64_t done) { last = done; });
  std::multiset<std::int64_t> wanted;
  for (std::int64_t t : {1, 2, 7, 11})
    for (std::int64_t x : {0, 2, 4}) wanted.insert(value_at(t, x));
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(last, 3);
  EXPECT_EQ(data.store->reads, 3);  // each chunk once
}

TEST(Sweep, PiecesThatEndWhileProgressRunsAreReported) {
  const FakeData data(4, 3, 5);
  const Positions times = Positions::range(0, 12), xs = Positions::range(0, 5);
  const Sweep sweep(data.dataset->variable("v"), {&times, &xs});
  Log log;
  Engine engine({.threads = 2, .memory = 1 << 20, .prefetch = false}, log);
  std::mutex mutex;
  std::condition_variable changed;
  int used = 0;
  std::vector<std::int64_t> reported;
  sweep.read(
      engine,
      [&](std::int64_t, const Sweep::Piece&, std::shared_ptr<const Buffer>) {
        const std::lock_guard lock(mutex);
        ++used;
        changed.notify_all();
      },
      [&](std::int64_t done) {
        reported.push_back(done);
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return used == 4; });
        // The last piece is counted just after it was used.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  ASSERT_FALSE(reported.empty());
  EXPECT_EQ(reported.back(), 4);
}

TEST(Sweep, TouchedChunksAreItsPieces) {
  const FakeData data(4, 3, 5);
  const Variable& variable = data.dataset->variable("v");
  const Positions xs = Positions::range(1, 2);
  for (const Positions& times :
       {Positions::range(0, 12), Positions::range(2, 2), Positions::range(5, 1),
        Positions::list({11, 0, 1}), Positions::one(4)}) {
    EXPECT_EQ(touched_chunks(variable, {&times, &xs}), Sweep(variable, {&times, &xs}).pieces());
  }
}

TEST(Sweep, TheFastestDimensionRuns) {
  const FakeData data(4, 3, 5);
  const Positions times = Positions::range(2, 8), xs = Positions::range(0, 5);
  const Sweep sweep(data.dataset->variable("v"), {&times, &xs}, 0);
  EXPECT_EQ(sweep.run(), 4);
  EXPECT_EQ(sweep.piece(1).box, (Box{{3, 0}, {3, 5}}));
  EXPECT_EQ(sweep.piece(3).box, (Box{{9, 0}, {1, 5}}));
  EXPECT_EQ(sweep.piece(3).axes[0].first, 7);
}

TEST(Sweep, AFailureEndsItAndIsThrown) {
  const FakeData data(200, 3, 5);
  data.store->failing = 20;
  const Positions times = Positions::range(0, 600), xs = Positions::range(0, 5);
  const Sweep sweep(data.dataset->variable("v"), {&times, &xs});
  Log log;
  Engine engine({.threads = 2, .memory = 1 << 12, .prefetch = false}, log);
  std::atomic<int> used{0};
  try {
    sweep.read(engine,
               [&](std::int64_t, const Sweep::Piece&, std::shared_ptr<const Buffer>) { ++used; },
               {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
  EXPECT_GE(used, 20 - 10);
  EXPECT_LT(used, 150);
}

TEST(Sweep, WhatUseThrowsIsThrown) {
  const FakeData data(4, 3, 5);
  const Positions times = Positions::range(0, 12), xs = Positions::range(0, 5);
  const Sweep sweep(data.dataset->variable("v"), {&times, &xs});
  Log log;
  Engine engine({.threads = 2, .prefetch = false}, log);
  EXPECT_THROW(sweep.read(engine,
                          [&](std::int64_t, const Sweep::Piece&, std::shared_ptr<const Buffer>) {
                            throw Error(ErrorCode::no_memory, "no");
                          },
                          {}),
               Error);
}

}  // namespace sweep_test
}  // namespace batchfs

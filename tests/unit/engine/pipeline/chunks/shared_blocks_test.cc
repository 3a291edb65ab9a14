// Batches in work share the blocks of a chunk: a block decoded for one goes to all that need it.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/chunks/scheduled.h"
#include "tests/unit/eventually.h"

namespace batchfs {
namespace shared_blocks_test {

using scheduled::kWidth;
using scheduled::Reading;
using scheduled::Scheduled;

/// Blosc frames of 40 steps, each a block; the size of blocks is known.
struct ScheduledBlocks : Scheduled {
  static constexpr std::int64_t kManySteps = 40;
  static constexpr std::uint64_t kStep = kWidth * 4;  // bytes

  explicit ScheduledBlocks(bool remote) : Scheduled(remote, "null", 2, kManySteps, kBlosc) {
    data.store->blosc_block = kStep;
    Reading first(array, {{9, {{{0, 0}, {1, kWidth}}}}});
    scheduler.submit(first.assembly);
    first.expect_values();
    EXPECT_EQ(array->largest_block(), kStep);
    counters.bytes_decoded = 0;
  }
  std::uint64_t take_decoded() { return counters.bytes_decoded.exchange(0); }
};

class SharedBlocksTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Stores, SharedBlocksTest, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "remote" : "local";
});

TEST(SharedBlocks, BlocksAreDecodedOnceForAllThatWaitForThem) {
  ScheduledBlocks s(false);
  const auto later = [&](const std::vector<Box>& boxes) {
    return Reading(s.array, {{3, boxes}}, kPrefetch + 9, false);
  };
  // The second has two steps that overlap the first one's, in two parts; the third none.
  Reading first(s.array, {{3, {{{5, 1}, {3, 2}}}}});
  Reading overlaps = later({{{6, 0}, {3, kWidth}}, {{8, 2}, {2, 3}}}),
          inside = later({{{6, 4}, {2, 1}}}), before = later({{{3, 0}, {4, 1}}}),
          apart = later({{{20, 0}, {3, kWidth}}});
  for (Reading* reading : {&overlaps, &inside, &before, &apart, &first})
    s.scheduler.submit(reading->assembly);
  first.expect_values();
  inside.expect_values();
  EXPECT_EQ(s.take_decoded(), 3 * s.kStep);
  EXPECT_FALSE(overlaps.is_done() || before.is_done() || apart.is_done());
  const auto start = [&](Reading& reading) {
    reading.assembly->started = true;
    s.scheduler.reprioritize(reading.assembly);
    reading.expect_values();
    return s.take_decoded();
  };
  EXPECT_EQ(start(overlaps), 2 * s.kStep) << "8 and 9 are left";
  EXPECT_EQ(start(before), 2 * s.kStep) << "3 and 4 are left";
  EXPECT_EQ(start(apart), 3 * s.kStep);
  // The worker releases the decoded data after it has notified the reader.
  EXPECT_TRUE(eventually([&] { return s.budget.used() == s.cache.bytes(); }));
}

// Data decoded in addition to a request, because it lies in the same blocks, serves others, too.
TEST(SharedBlocks, WhatBlocksHoldBesideTheNeedServesOthers) {
  ScheduledBlocks s(false);
  s.data.store->blosc_block = 4 * s.kStep;
  Reading larger(s.array, {{8, {{{0, 0}, {1, kWidth}}}}});
  s.scheduler.submit(larger.assembly);
  larger.expect_values();
  Reading other(s.array, {{3, {{{10, 0}, {2, kWidth}}}}}, kPrefetch + 9, false),
      first(s.array, {{3, {{{8, 1}, {1, 2}}}}});
  s.scheduler.submit(other.assembly);
  s.scheduler.submit(first.assembly);
  first.expect_values();
  other.expect_values();
}

// A fetched chunk serves all batches that wait for it, and each block is decoded once.
TEST(SharedBlocks, AFetchedChunkIsDecodedOnceForAllThatWaitForIt) {
  ScheduledBlocks s(true);
  const auto later = [&](const Box& box) {
    return Reading(s.array, {{3, {box}}}, kPrefetch + 9, false);
  };
  Reading first(s.array, {{3, {{{2, 0}, {1, kWidth}}}}});
  Reading some = later({{20, 0}, {3, 2}}), overlaps = later({{21, 3}, {3, 2}}),
          inside = later({{22, 0}, {1, 1}}), apart = later({{30, 0}, {2, kWidth}});
  for (Reading* reading : {&some, &overlaps, &inside, &apart, &first})
    s.scheduler.submit(reading->assembly);
  for (Reading* reading : {&some, &overlaps, &inside, &apart, &first}) reading->expect_values();
  EXPECT_EQ(s.take_decoded(), 7 * s.kStep) << "2, 20 to 23, 30 and 31";
}

// A need for more than half of a chunk decodes the whole chunk, for all batches.
TEST(SharedBlocks, MoreThanHalfOfAChunkServesAll) {
  ScheduledBlocks s(false);
  Reading other(s.array, {{3, {{{38, 2}, {2, 3}}}}}, kPrefetch + 9, false),
      first(s.array, {{3, {{{0, 0}, {22, kWidth}}}}});
  s.scheduler.submit(other.assembly);
  s.scheduler.submit(first.assembly);
  first.expect_values();
  other.expect_values();
  EXPECT_EQ(s.take_decoded(), 40 * s.kStep);
}

TEST(SharedBlocks, FillValuesAreNotMixedWithWhatCameLater) {
  ScheduledBlocks s(false);
  s.data.store->missing = 3;
  Reading first(s.array, {{3, {{{5, 0}, {3, kWidth}}}}}),
      overlaps(s.array, {{3, {{{6, 0}, {3, kWidth}}}}}, kPrefetch + 9, false),
      apart(s.array, {{3, {{{20, 0}, {3, kWidth}}}}}, kPrefetch + 9, false);
  for (Reading* reading : {&overlaps, &apart}) s.scheduler.submit(reading->assembly);
  s.scheduler.submit(first.assembly);
  EXPECT_TRUE(eventually([&] { return first.is_done(); }));
  s.data.store->missing = -1;
  overlaps.assembly->started = true;
  s.scheduler.reprioritize(overlaps.assembly);
  overlaps.expect_values();
}

TEST(SharedBlocks, WhoGotAPartOfAFailingChunkFailsWithIt) {
  ScheduledBlocks s(false);
  Reading first(s.array, {{3, {{{5, 0}, {3, kWidth}}}}}),
      overlaps(s.array, {{3, {{{6, 0}, {3, kWidth}}}}}, kPrefetch + 9, false),
      apart(s.array, {{3, {{{20, 0}, {3, kWidth}}}}}, kPrefetch + 9, false);
  for (Reading* reading : {&overlaps, &apart}) s.scheduler.submit(reading->assembly);
  s.scheduler.submit(first.assembly);
  first.expect_values();
  s.data.store->failing = 3;
  overlaps.assembly->started = true;
  s.scheduler.reprioritize(overlaps.assembly);
  EXPECT_EQ(overlaps.expect_error().code(), ErrorCode::io);
}

TEST_P(SharedBlocksTest, ReadersOfManyPartsGetTheirValues) {
  ScheduledBlocks s(GetParam());
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n));
  };
  std::vector<std::unique_ptr<Reading>> readings;
  for (int i = 0; i < 300; ++i) {
    std::vector<Reading::Piece> pieces;
    for (std::int64_t chunk = below(3); chunk < 9; chunk += 1 + below(4)) {
      std::vector<Box> boxes;
      for (std::int64_t n = 1 + below(2); n > 0; --n) {
        const std::int64_t first = below(s.kManySteps - 3), left = below(kWidth);
        boxes.push_back({{first, left}, {1 + below(3), 1 + below(kWidth - left)}});
      }
      pieces.push_back({chunk, boxes});
    }
    readings.push_back(std::make_unique<Reading>(s.array, pieces, kPrefetch + i, i % 5 == 0));
    readings.back()->assembly->shares_memory = i % 2 == 0;
    s.scheduler.submit(readings.back()->assembly);
  }
  for (const auto& reading : readings) {
    reading->assembly->started = true;
    s.scheduler.reprioritize(reading->assembly);
  }
  for (const auto& reading : readings) reading->expect_values();
  EXPECT_TRUE(eventually([&] {
    while (s.cache.evict_one()) {
    }
    return s.budget.used() == 0;
  }));
}

}  // namespace shared_blocks_test
}  // namespace batchfs

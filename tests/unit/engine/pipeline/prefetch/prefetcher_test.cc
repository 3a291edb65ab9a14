#include "engine/pipeline/prefetch/prefetcher.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/fake_store.h"
#include "tests/unit/engine/pipeline/raw_format.h"

namespace batchfs {
namespace prefetcher_test {

const RawTestFormat kRaw;

class PrefetcherTest : public testing::Test {
 protected:
  std::vector<std::int64_t> open(std::int64_t epoch, std::int64_t batch, bool stalled = false,
                                 std::uint64_t bytes = 1) {
    std::vector<std::int64_t> result;
    const BatchRequest request{view_, &kRaw, epoch, batch};
    prefetcher_.opened(request, stalled);
    for (const BatchRequest& r : prefetcher_.due(request, bytes, 500))
      result.push_back(r.epoch * 100 + r.batch);
    return result;
  }
  FakeData data_{10, 4, 2};
  std::shared_ptr<const View> view_ =
      data_.view(R"({"window": {"time": 1}, "batch": 4, "epochs": 2})");
  Prefetcher prefetcher_;
};

TEST_F(PrefetcherTest, KeepsAWindowAheadAndDoublesItWhenTheReaderWaits) {
  EXPECT_EQ(open(0, 0), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(open(0, 1), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(open(0, 2, true), (std::vector<std::int64_t>{3, 4, 5, 6}));
}

TEST_F(PrefetcherTest, ForgetsTheStreamsOfViews) {
  const auto other = data_.view(R"({"name": "other", "window": {"time": 1}, "batch": 4})");
  open(0, 0);
  prefetcher_.opened({other, &kRaw, 0, 0}, false);
  prefetcher_.forget([&](const View& view) { return &view == view_.get(); });
  ASSERT_EQ(prefetcher_.streams().size(), 1u);
  EXPECT_EQ(prefetcher_.streams()[0].view, "other");
  EXPECT_TRUE(prefetcher_.due({view_, &kRaw, 0, 0}, 1, 500).empty());
}

TEST_F(PrefetcherTest, AViewThatIsGoneHasNoStream) {
  open(0, 0);
  view_ = nullptr;
  EXPECT_TRUE(prefetcher_.streams().empty());
  prefetcher_.forget([](const View&) { return false; });
}

// Chunks of four samples, three of them a block: six batches of two samples, of which the first
// needs all three.
TEST_F(PrefetcherTest, BlocksAreBegunABlockAhead) {
  const auto view = data_.view(
      R"({"window": {"time": 1}, "batch": 2, "order": {"shuffle": "block", "buffer": 3}})");
  const auto window_of = [&](std::int64_t world) {
    const BatchRequest request{view, &kRaw, 0, 0, 0, world};
    prefetcher_.opened(request, false);
    return prefetcher_.due(request, 1, 500).size();
  };
  EXPECT_EQ(window_of(1), 7u);
  EXPECT_EQ(window_of(2), 4u);  // of every other batch
  const BatchRequest large{view, &kRaw, 0, 1};
  prefetcher_.opened(large, false);
  EXPECT_EQ(prefetcher_.due(large, 250, 500).size(), 2u);  // memory decides
}

// Each lane has a block of six batches; one rank reads both in turn.
TEST_F(PrefetcherTest, EveryLaneHasABlock) {
  const auto view = data_.view(
      R"({"window": {"time": 1}, "batch": 2, "order": {"shuffle": "block", "buffer": 3, "lanes": 2}})");
  for (const auto& [world, expected] : {std::pair(2, 7u), std::pair(1, 13u)}) {
    const BatchRequest request{view, &kRaw, 0, 0, 0, world};
    prefetcher_.opened(request, false);
    EXPECT_EQ(prefetcher_.due(request, 1, 500).size(), expected) << world;
  }
}

TEST_F(PrefetcherTest, GoesOnIntoTheNextEpochAndEndsWithTheLast) {
  open(0, 7);
  EXPECT_EQ(open(0, 8), (std::vector<std::int64_t>{9, 100}));
  open(1, 7);
  EXPECT_EQ(open(1, 8), (std::vector<std::int64_t>{109}));
}

// Training loops may stop an epoch after a number of batches (Lightning's limit_train_batches): the
// next epoch follows, and batches beyond the limit are not made.
TEST_F(PrefetcherTest, LearnsWhereAReaderEndsItsEpochs) {
  view_ = data_.view(R"({"window": {"time": 1}, "batch": 4, "epochs": 4})");
  open(0, 0);
  open(0, 1);
  open(0, 2);
  EXPECT_TRUE(prefetcher_.wanted({view_, &kRaw, 0, 3}));
  EXPECT_FALSE(prefetcher_.leaves_out({view_, &kRaw, 0, 3}));
  EXPECT_EQ(open(1, 0), (std::vector<std::int64_t>{101, 102})) << "no jump";
  EXPECT_FALSE(prefetcher_.is_ahead({view_, &kRaw, 0, 3}));
  EXPECT_TRUE(prefetcher_.leaves_out({view_, &kRaw, 0, 3}));
  EXPECT_FALSE(prefetcher_.leaves_out({view_, &kRaw, 0, 2}));
  EXPECT_FALSE(prefetcher_.wanted({view_, &kRaw, 1, 3}));
  EXPECT_EQ(open(1, 1), (std::vector<std::int64_t>{102, 200}));
  EXPECT_EQ(open(1, 2), (std::vector<std::int64_t>{200, 201}));
  EXPECT_TRUE(prefetcher_.is_ahead({view_, &kRaw, 2, 0}));
  EXPECT_EQ(open(2, 0), (std::vector<std::int64_t>{201, 202}));
  EXPECT_EQ(prefetcher_.streams()[0].epoch, 2);
  EXPECT_EQ(prefetcher_.streams()[0].batch, 0);
  open(2, 1);
  open(2, 2);
  EXPECT_EQ(open(2, 3), (std::vector<std::int64_t>{204, 205})) << "longer than the last epoch";
  EXPECT_FALSE(prefetcher_.wanted({view_, &kRaw, 3, 0}));
}

TEST_F(PrefetcherTest, ABatchThatIsReadLateIsNoEndOfAnEpoch) {
  open(0, 7);
  open(0, 8);
  open(1, 0);  // another process is to read the tenth batch of the first epoch
  EXPECT_EQ(open(0, 9), (std::vector<std::int64_t>{101, 102}));
  EXPECT_TRUE(prefetcher_.is_ahead({view_, &kRaw, 1, 9}));
}

TEST_F(PrefetcherTest, ShutsForAReaderThatJumpsUntilTwoInOrder) {
  open(0, 0);
  EXPECT_TRUE(open(1, 6).empty());
  EXPECT_EQ(open(1, 7).size(), 2u);
}

TEST_F(PrefetcherTest, IsBoundByMemoryAndShrinksUnderPressure) {
  EXPECT_EQ(open(0, 0, true, 250).size(), 2u);
  EXPECT_EQ(open(0, 1, true, 250).size(), 2u);  // half of 1000 holds two
  prefetcher_.on_memory_pressure({view_, &kRaw, 0, 1});
  EXPECT_EQ(open(0, 2, false, 250).size(), 1u);
}

TEST_F(PrefetcherTest, EndsBeforeTheBatchThatHasNoSpareMemory) {
  for (int batch = 0; batch < 4; ++batch) open(0, batch, true, 1);
  ASSERT_EQ(prefetcher_.streams()[0].prefetch, 16);
  prefetcher_.on_no_spare_memory({view_, &kRaw, 0, 8});
  EXPECT_EQ(prefetcher_.streams()[0].prefetch, 4);
  prefetcher_.on_no_spare_memory({view_, &kRaw, 0, 9});
  EXPECT_EQ(prefetcher_.streams()[0].prefetch, 4) << "it never grows";
  prefetcher_.on_no_spare_memory({view_, &kRaw, 0, 4});
  EXPECT_EQ(prefetcher_.streams()[0].prefetch, Prefetcher::kFirstPrefetch);
  prefetcher_.on_no_spare_memory({view_, &kRaw, 0, 2});
  EXPECT_EQ(prefetcher_.streams()[0].prefetch, Prefetcher::kFirstPrefetch)
      << "its reader has passed it";
}

TEST_F(PrefetcherTest, CountsTheStreamsThatAreRead) {
  EXPECT_EQ(prefetcher_.streams_read(), 1);
  for (std::int64_t batch : {0, 1})
    for (std::int64_t rank : {0, 1, 2})
      prefetcher_.opened({view_, &kRaw, 0, batch, rank, 3}, false);
  EXPECT_EQ(prefetcher_.streams_read(), 3);
  prefetcher_.opened({view_, &kRaw, 9, 2, 2, 3}, false);
  EXPECT_EQ(prefetcher_.streams_read(), 2) << "one jumps about: nothing is made ahead for it";
  for (std::uint64_t i = 0; i <= Prefetcher::kForgotten; ++i)
    prefetcher_.opened({view_, &kRaw, 0, 1, 0, 3}, false);
  EXPECT_EQ(prefetcher_.streams_read(), 1) << "the other has stopped";
}

TEST_F(PrefetcherTest, KnowsWhatLiesBehindTheWindow) {
  open(0, 0);
  const BatchRequest request{view_, &kRaw, 0, 0};
  const auto beyond = prefetcher_.beyond(request, 3);
  ASSERT_EQ(beyond.size(), 3u);
  EXPECT_EQ(beyond[0].request.batch, 3);
  EXPECT_EQ(beyond[0].distance, 3);
  EXPECT_TRUE(prefetcher_.wanted({view_, &kRaw, 0, 2}));
  EXPECT_FALSE(prefetcher_.wanted({view_, &kRaw, 0, 3}));
}

}  // namespace prefetcher_test
}  // namespace batchfs

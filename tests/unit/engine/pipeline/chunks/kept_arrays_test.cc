#include "engine/pipeline/chunks/kept_arrays.h"

#include <gtest/gtest.h>

#include "engine/dataset/dataset.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace kept_arrays_test {

constexpr std::uint64_t kChunk = 96, kAll = 10 * kChunk;

/// Views over ten chunks of four times.
class KeptArraysTest : public testing::Test {
 protected:
  std::shared_ptr<const View> view(const std::string& json = R"({"window": {"time": 1}})") const {
    return data_.view(json);
  }
  void cache(const View& view, std::int64_t chunk) {
    cache_.insert({view.variables()[0]->array.get(), chunk}, view.variables()[0]->array, {},
                  kChunk);
  }

  FakeData data_{10, 4, 6, kWholeChunks};
  Counters counters_;
  ChunkCache cache_{counters_};
  /// Three quarters are for chunks.
  KeptArrays kept_{cache_, kAll * 4 / 3};
};

TEST_F(KeptArraysTest, RoomIsLeftForChunksThatHaveNotCome) {
  const auto v = view();
  EXPECT_EQ(cache_.missing_bytes(), 0u);
  EXPECT_FALSE(kept_.keeps());
  EXPECT_EQ(kept_.bytes_of(v), kAll);
  EXPECT_TRUE(kept_.keep(v, 1));
  EXPECT_TRUE(kept_.keeps());
  EXPECT_EQ(cache_.missing_bytes(), kAll);
  cache(*v, 3);
  EXPECT_EQ(cache_.missing_bytes(), kAll - kChunk);
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_EQ(cache_.missing_bytes(), kAll);
}

TEST_F(KeptArraysTest, WhichChunksOfABatchAreKept) {
  const auto choose = [this](const std::string& json, std::int64_t epoch, const TakenParts& taken,
                             bool fits) {
    const KeepChoice choice = choose_keeping(
        *view(json), epoch, 0, [&] { return taken; }, [] { return double{kAll}; },
        [&] { return fits; });
    return std::pair(choice.chunks, choice.whole);
  };
  // Ten batches of four of the forty samples.
  const std::string twice = R"({"window": {"time": 1}, "batch": 4, "epochs": 2})";
  EXPECT_EQ(choose(twice, 0, {}, true), std::pair(true, true)) << "the next epoch takes them";
  EXPECT_EQ(choose(twice, 0, {}, false), std::pair(false, false));
  EXPECT_EQ(choose(twice, 1, {kAll, kAll}, true), std::pair(false, false)) << "in order";
  const std::string shuffled =
      R"({"window": {"time": 1}, "batch": 4, "order": {"shuffle": "global"}})";
  EXPECT_EQ(choose(shuffled, 0, {10, kAll / 10}, true), std::pair(false, false)) << "once each";
  EXPECT_EQ(choose(shuffled, 0, {10, kAll / 5}, true), std::pair(true, false));
  EXPECT_EQ(choose(shuffled, 0, {kAll / 5, kAll / 5}, true), std::pair(true, true));
  EXPECT_EQ(choose(shuffled, 0, {kAll / 5, kAll / 5}, false), std::pair(false, false));
}

TEST_F(KeptArraysTest, ChunksThatAreHereAlreadyCount) {
  const auto v = view();
  cache(*v, 0);
  EXPECT_TRUE(kept_.keep(v, 1));
  EXPECT_EQ(cache_.missing_bytes(), kAll - kChunk);
}

TEST_F(KeptArraysTest, WhatDoesNotFitIsNotKept) {
  KeptArrays kept(cache_, kAll * 4 / 3 - 1);
  EXPECT_FALSE(kept.keep(view(), 1));
  EXPECT_FALSE(kept.keeps());
}

TEST_F(KeptArraysTest, OnlyTheChunksThatTheViewTakesCount) {
  const auto v = view(R"({"select": {"time": {"from": "#5", "to": "#9"}}, "window": {"time": 1}})");
  EXPECT_EQ(kept_.bytes_of(v), 2 * kChunk);
}

TEST_F(KeptArraysTest, ViewsOfTheSameChunksTakeThemOnce) {
  EXPECT_TRUE(kept_.keep(view(), 1));
  const auto one = view(), other = view();
  EXPECT_TRUE(kept_.keep(one, 1));
  EXPECT_TRUE(kept_.keep(other, 1));
  EXPECT_EQ(cache_.missing_bytes(), kAll);
}

TEST_F(KeptArraysTest, ALaterViewThatDoesNotFitBesideIsNotKept) {
  const FakeData more(10, 4, 6, kWholeChunks);
  const auto first = view(), second = more.view(R"({"window": {"time": 1}})");
  EXPECT_TRUE(kept_.keep(first, 1));
  EXPECT_FALSE(kept_.keep(second, 2));
  EXPECT_TRUE(kept_.keep(first, 3));
  EXPECT_EQ(cache_.missing_bytes(), kAll);
  // The first one has no readers any more.
  EXPECT_TRUE(kept_.keep(second, 4 + KeptArrays::kForgotten));
  EXPECT_EQ(cache_.missing_bytes(), kAll);
}

TEST_F(KeptArraysTest, AViewThatIsGoneOrForgottenMakesRoom) {
  const FakeData more(10, 4, 6, kWholeChunks);
  const auto second = more.view(R"({"window": {"time": 1}})");
  EXPECT_TRUE(kept_.keep(view(), 1));
  EXPECT_TRUE(kept_.keep(second, 1));
  kept_.forget([&](const View& v) { return &v == second.get(); });
  EXPECT_FALSE(kept_.keeps());
}

TEST_F(KeptArraysTest, AViewThatItsCallerOwnsOtherwiseIsKept) {
  const auto owner = view();
  const std::shared_ptr<const View> borrowed(std::shared_ptr<void>(), owner.get());
  EXPECT_TRUE(kept_.keep(borrowed, 1));
  EXPECT_TRUE(kept_.keep(borrowed, 2));
}

TEST_F(KeptArraysTest, AnUncompressedLocalArrayIsReadAgainInstead) {
  const FakeData plain(10, 4, 6);
  const auto v = plain.view(R"({"window": {"time": 1}})");
  EXPECT_EQ(kept_.bytes_of(v), 0);
  plain.store->asynchronous = true;  // from afar
  EXPECT_EQ(kept_.bytes_of(plain.view(R"({"window": {"time": 1}})")), kAll);
}

}  // namespace kept_arrays_test
}  // namespace batchfs

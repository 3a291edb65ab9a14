#include "tools/planning/batch_explanation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"
#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs {
namespace batch_explanation_test {

/// Ten chunks of four steps of six int32, 96 bytes: two steps a batch.
constexpr std::uint64_t kChunk = 96;

BatchExplanation explain(const FakeData& data, std::int64_t batch, double memory,
                         const std::string& rest = "", std::int64_t epoch = 0,
                         std::size_t most = 100) {
  const auto view = data.view(R"({"window": {"time": 1}, "batch": 2)" + rest + "}");
  const ViewCost cost = estimate_cost(*view);
  return explain_batch(*view, epoch, batch, cost, estimate_epoch(*view, cost, memory), most);
}

using From = ExplainedChunk::From;

TEST(BatchExplanation, TheFirstBatchOfAChunkDecodesIt) {
  const FakeData data{10, 4, 6, kWholeChunks};
  const BatchExplanation explanation = explain(data, 2, 1e6);
  EXPECT_EQ(explanation.samples, 2);
  ASSERT_EQ(explanation.chunks, 1);
  ASSERT_TRUE(explanation.in_order);
  EXPECT_EQ(explanation.in_order->read.whole, 1);
  EXPECT_EQ(explanation.in_order->kept, 0);
  const ExplainedChunk& chunk = explanation.listed.at(0);
  EXPECT_EQ(chunk.chunk, 1);
  EXPECT_EQ(chunk.from, From::store);
  EXPECT_EQ(chunk.need, (Box{{0, 0}, {2, 6}}));
  EXPECT_DOUBLE_EQ(chunk.taken, 0.5);
  EXPECT_EQ(chunk.decoding.why, DecodeChoice::Why::only_whole);
  EXPECT_EQ(chunk.decoded, kChunk);
  EXPECT_EQ(chunk.fetched, kChunk);
  EXPECT_TRUE(chunk.fetched_known);
  ASSERT_TRUE(chunk.place);
  EXPECT_EQ(chunk.place->key, "v/1/0");
}

TEST(BatchExplanation, TheNextBatchFindsItInMemory) {
  const FakeData data{10, 4, 6, kWholeChunks};
  const BatchExplanation explanation = explain(data, 3, 1e6);
  ASSERT_TRUE(explanation.in_order);
  EXPECT_EQ(explanation.in_order->kept, 1);
  EXPECT_EQ(explanation.in_order->read.decoded, 0);
  EXPECT_EQ(explanation.alone.whole, 1) << "read alone it decodes the chunk";
  EXPECT_EQ(explanation.alone.decoded, kChunk);
  EXPECT_EQ(explanation.listed.at(0).from, From::memory);
  EXPECT_EQ(explanation.listed.at(0).source->decoded_by, 2);
}

TEST(BatchExplanation, WithoutMemoryItIsDecodedAgain) {
  const FakeData data{10, 4, 6, kWholeChunks};
  const BatchExplanation explanation =
      explain(data, 3, 0, R"(, "order": {"shuffle": "global", "seed": 1})");
  ASSERT_TRUE(explanation.in_order);
  EXPECT_EQ(explanation.in_order->read.whole, explanation.chunks);
}

TEST(BatchExplanation, LaterEpochsReadNothingWhereAllStays) {
  const FakeData data{10, 4, 6, kWholeChunks};
  const BatchExplanation explanation = explain(data, 2, 1e6, R"(, "epochs": 2)", 1);
  ASSERT_TRUE(explanation.in_order);
  EXPECT_EQ(explanation.in_order->kept, 1);
  EXPECT_LT(explanation.listed.at(0).source->decoded_by, 0);
}

TEST(BatchExplanation, AnUncompressedChunkIsReadInPart) {
  const FakeData data{10, 4, 6};
  for (const std::int64_t batch : {2, 3}) {
    const BatchExplanation explanation = explain(data, batch, 1e6);
    ASSERT_TRUE(explanation.in_order);
    EXPECT_EQ(explanation.in_order->read.in_part, 1) << batch;
    EXPECT_EQ(explanation.in_order->read.fetched, kChunk / 2);
    EXPECT_TRUE(explanation.in_order->read.fetched_known);
  }
}

TEST(BatchExplanation, APartOfABlockedChunk) {
  const FakeData data{10, 4, 6, "null", kBlosc};
  data.store->blosc_block = 24;
  const BatchExplanation explanation = explain(data, 3, 1e6);
  EXPECT_EQ(explanation.alone.in_part, 1);
  EXPECT_EQ(explanation.alone.decoded, kChunk / 2);
  EXPECT_FALSE(explanation.alone.fetched_known) << "blocks are found when they are read";
}

TEST(BatchExplanation, OnlyTheFirstChunksAreListed) {
  const FakeData data{10, 4, 6, kWholeChunks};
  const BatchExplanation explanation = explain(data, 0, 1e6, R"(, "tensors": {"x":
      {"variables": ["v"], "offsets": {"time": [0, 4, 8, 12]}}})",
                                               0, 2);
  EXPECT_EQ(explanation.chunks, 4);
  EXPECT_EQ(explanation.listed.size(), 2u);
  EXPECT_EQ(explanation.alone.whole, 4);
}

TEST(BatchExplanation, AChunkThatIsNotStoredIsFillValues) {
  MemoryData data;
  data.declare("v", "<f4", {"time"}, {8}, {4});
  const auto view = View::parse(data.dataset(), R"({"window": {"time": 1}, "batch": 8})", "v", "f");
  const ViewCost cost = estimate_cost(*view);
  const BatchExplanation explanation =
      explain_batch(*view, 0, 0, cost, estimate_epoch(*view, cost, 1e6), 10);
  EXPECT_EQ(explanation.alone.missing, 2);
  EXPECT_EQ(explanation.alone.fetched, 0);
  EXPECT_EQ(explanation.alone.decoded, 32);
  EXPECT_EQ(explanation.listed.at(1).from, From::missing);
}

}  // namespace batch_explanation_test
}  // namespace batchfs

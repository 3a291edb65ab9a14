#include "tools/planning/view_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace view_cost_test {

/// v(time, x) of float32, 100 by 64, in chunks of 10 steps.
std::shared_ptr<const View> view(const std::string& json) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {100, 64}, {10, 64});
  return parse_view(data.dataset(), json);
}

TEST(ViewCost, OfBatchesThatAreChunksIsTheirSize) {
  const ViewCost cost = estimate_cost(*view(R"({"window": {"time": 1}, "batch": 10})"));
  EXPECT_EQ(cost.planned,
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));  // of nine and the last
  EXPECT_EQ(cost.batch_bytes, 10 * 64 * 4);
  EXPECT_EQ(cost.chunks, 1);
  EXPECT_EQ(cost.used_bytes, 10 * 64 * 4);
  EXPECT_EQ(cost.decode_amplification(), 1);
  EXPECT_EQ(cost.view_chunks, 10);
  EXPECT_EQ(cost.view_bytes, 100 * 64 * 4);
  EXPECT_EQ(cost.reads_per_chunk, 1);
  EXPECT_EQ(cost.epoch_bytes, 100 * 64 * 4);
  EXPECT_EQ(cost.memory_need, 3 * 10 * 64 * 4);
  EXPECT_FALSE(cost.waste);
}

TEST(ViewCost, NamesTheDimensionThatIsWasted) {
  const ViewCost cost = estimate_cost(
      *view(R"({"window": {"time": {"size": 1, "stride": 10}, "x": 32}, "batch": 1})"));
  EXPECT_EQ(cost.used_bytes, 32 * 4);
  EXPECT_EQ(cost.decoded_bytes, 10 * 64 * 4);
  EXPECT_EQ(cost.decode_amplification(), 20);
  ASSERT_TRUE(cost.waste);
  EXPECT_EQ(cost.waste->variable, "v");
  EXPECT_EQ(cost.waste->dim, "time");  // one of ten; of x it is half
  EXPECT_EQ(cost.waste->used, 1);
  EXPECT_EQ(cost.waste->chunk, 10);
  EXPECT_EQ(cost.reads_per_chunk, 2);  // for each half of x
}

TEST(ViewCost, OverlappingWindowsUseAnElementOnce) {
  const ViewCost cost =
      estimate_cost(*view(R"({"window": {"time": {"size": 4, "stride": 1}}, "batch": 2})"));
  EXPECT_EQ(cost.batch_bytes, 2 * 4 * 64 * 4);
  EXPECT_EQ(cost.used_bytes, 5 * 64 * 4);
}

TEST(ViewCost, FetchedAreStoredBytes) {
  MemoryData data;
  data.add("v", "<f4", {"time"}, {16}, std::vector<float>(16, 1));
  const ViewCost cost =
      estimate_cost(*parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 4})"));
  ASSERT_TRUE(cost.fetched_bytes);
  EXPECT_EQ(*cost.fetched_bytes, 64);  // all of the one chunk
  EXPECT_EQ(cost.fetch_amplification(), 4);
}

TEST(ViewCost, AnEpochDecodesWhatTheMemoryDoesNotKeep) {
  constexpr double kChunk = 10 * 64 * 4, kAll = 10 * kChunk;
  const auto decoded = [](const char* order, double kept) {
    const auto of = view(fmt::format(
        R"({{"window": {{"time": 1}}, "batch": 4, "order": {{"shuffle": "{}"}}}})", order));
    return epoch_decoded(*of, estimate_cost(*of), kept);
  };
  for (const char* order : {"none", "global", "block"})
    EXPECT_EQ(decoded(order, kAll), kAll) << order;
  // In order, each chunk is kept until the last batch that needs it.
  EXPECT_NEAR(decoded("none", 4 * kChunk), kAll, 0.2 * kAll);
  EXPECT_GT(decoded("none", 0), 1.2 * kAll);
  // With half of the chunks in memory, half of four random samples find their chunk.
  EXPECT_NEAR(decoded("global", kAll / 2), decoded("global", 0) / 2, 0.01 * kAll);
  EXPECT_GT(decoded("global", 0), 5 * kAll);
}

TEST(ViewCost, MemoryIsSharedByKeptChunksAndBatches) {
  const auto again = view(R"({"window": {"time": 1}, "batch": 4, "epochs": 2})");
  const ViewCost cost = estimate_cost(*again);
  EXPECT_EQ(kept_between_batches(*again, cost, 1e9), cost.view_bytes);
  EXPECT_LE(kept_between_batches(*again, cost, 24'000), 12'000);
  EXPECT_EQ(kept_between_batches(*again, cost, 0), 0);
}

TEST(ViewCost, MemoryIsThatOfTheFirstBatch) {
  EXPECT_EQ(memory_need(*view(R"({"window": {"time": 1}, "batch": 10})")), 3 * 10 * 64 * 4);
}

TEST(ViewCost, OperandsAreMemoryOfABatchThatIsMade) {
  constexpr double kTensor = 10 * 16 * 4, kOperands = 10 * 64 * 8, kChunk = 10 * 64 * 4;
  const auto coarse = view(R"({"window": {"time": 1}, "batch": 10, "epochs": 2,
                               "tensors": {"t": {"variables": ["v"], "coarsen": {"x": 4}}}})");
  const ViewCost cost = estimate_cost(*coarse);
  EXPECT_EQ(cost.batch_bytes, kTensor);
  EXPECT_EQ(cost.operand_bytes, kOperands);
  EXPECT_EQ(cost.memory_need, 2 * kTensor + kOperands + kChunk);
  EXPECT_EQ(memory_need(*coarse), cost.memory_need);
  EXPECT_EQ(batch_memory(cost), kTensor + kOperands + 3 * 1024);
  EXPECT_EQ(kept_between_batches(*coarse, cost, 4 * (kTensor + kOperands + 3 * 1024)), 0);
}

TEST(ViewCost, ABlockOrderDecodesARunOfGroupsOnce) {
  const auto blocks =
      view(R"({"window": {"time": 1}, "batch": 5, "order": {"shuffle": "block", "buffer": 2}})");
  const BlockCost cost = estimate_block_cost(*blocks);
  EXPECT_EQ(cost.run_decoded, 2 * 10 * 64 * 4);
  EXPECT_EQ(cost.epoch_decoded, 100 * 64 * 4);
}

}  // namespace view_cost_test
}  // namespace batchfs

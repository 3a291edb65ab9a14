#include "tools/planning/advice.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace advice_test {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;

/// Advice on a view of v(time, x), 4000 steps of 256 KB in chunks of ten.
std::vector<std::string> advice_on(const std::string& json, std::uint64_t memory = kMemory) {
  MemoryData data;
  data.store->local = false;  // parts of uncompressed local chunks are read alone
  data.declare("v", "<f4", {"time", "x"}, {4000, 65536}, {10, 65536});
  const auto view = parse_view(data.dataset(), json);
  ViewCost cost = estimate_cost(*view);
  cost.absent.clear();  // the store has no chunks, which has its own advice
  return advice(*view, cost, estimate_epoch(*view, cost, static_cast<double>(memory)), memory);
}

TEST(Advice, IsNotNeededWhereBatchesAreChunks) {
  EXPECT_THAT(advice_on(R"({"window": {"time": 1}, "batch": 10})"), IsEmpty());
}

TEST(Advice, WindowsAlongADimensionOfNoVariable) {
  MemoryData data;
  data.declare("v", "<f4", {"time", "x"}, {40, 65536}, {10, 65536});
  data.declare("w", "<f4", {"time", "level"}, {40, 3}, {10, 3});
  const auto advice_of = [&](const std::string& json) {
    const auto view = parse_view(data.dataset(), json);
    ViewCost cost = estimate_cost(*view);
    cost.absent.clear();
    return advice(*view, cost, estimate_epoch(*view, cost, kMemory), kMemory);
  };
  EXPECT_THAT(advice_of(R"({"variables": ["v"], "window": {"level": 1}, "batch": 2})"),
              Contains(AllOf(HasSubstr("along level, which no variable of the view has"),
                             HasSubstr("have time, x;"), HasSubstr("level is a dimension of w"))));
  const auto is_about_windows = HasSubstr("Windows slide along");
  for (const char* const json :
       {R"({"variables": ["v", "w"], "window": {"level": 1, "time": 1}, "batch": 2})",
        R"({"variables": ["v"], "window": {"time": 1, "level": 3}, "batch": 2})"})
    EXPECT_THAT(advice_of(json), Not(Contains(is_about_windows))) << json;
}

TEST(Advice, LabelsThatTakeTooMuchMemory) {
  MemoryData data;
  constexpr std::int64_t kLength = 1 << 21;
  data.declare("v", "<f4", {"time"}, {kLength}, {kLength});
  data.index("time", "<f8", counting<double>(kLength));
  const auto advice_within = [&](std::uint64_t memory) {
    data.hierarchy.memory_limit = memory;
    const auto view = parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 1})");
    ViewCost cost = estimate_cost(*view);
    cost.absent.clear();
    return advice(*view, cost, estimate_epoch(*view, cost, static_cast<double>(memory)), memory);
  };
  const auto lacks = HasSubstr("Batches have no labels of time: they take 16.0 MB");
  EXPECT_THAT(advice_within(std::uint64_t{1} << 30), Not(Contains(lacks)));
  // 8 MB and a quarter of the memory fit.
  EXPECT_THAT(advice_within(4 << 20), Contains(AllOf(lacks, HasSubstr("--memory"))));
}

TEST(Advice, ABatchThatDoesNotFitComesFirst) {
  const auto lines = advice_on(R"({"window": {"time": 1}, "batch": 1000})", 64 << 20);
  ASSERT_THAT(lines, Not(IsEmpty()));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("A batch needs 750.0 MB"),
                              HasSubstr("the memory budget is 64.0 MB"), HasSubstr("--memory")));
}

TEST(Advice, ChunksOfWhichLittleIsUsed) {
  const auto lines = advice_on(R"({"window": {"time": {"size": 1, "stride": 10}}, "batch": 4})");
  EXPECT_THAT(lines,
              Contains(HasSubstr(
                  "A batch uses about 1 of the 10 positions that a chunk of v has along time")));
}

TEST(Advice, PartsOfChunksThatOtherBatchesUseAreNoReason) {
  const char* const view = R"({"window": {"time": 1}, "batch": 4})";
  EXPECT_THAT(advice_on(view, std::uint64_t{8} << 30), IsEmpty());  // everything is kept
  EXPECT_THAT(advice_on(view, 64 << 20), IsEmpty());  // a chunk is kept until the next batch
}

TEST(Advice, MemoryIsOneSentence) {
  EXPECT_EQ(memory_advice(64 << 20, 64 << 20), std::nullopt);
  EXPECT_THAT(*memory_advice(65 << 20, 64 << 20),
              HasSubstr("A batch needs 65.0 MB while it is made and the memory budget is 64.0 MB"));
}

TEST(Advice, BatchesThatAreTooSmall) {
  const auto lines =
      advice_on(R"({"window": {"time": 1, "x": {"size": 1024, "stride": 1024}}, "batch": 2})");
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("A batch is only 8.0 KB"),
                                    HasSubstr("A batch size of about 1024"))));
}

TEST(Advice, AGlobalOrderOfMoreThanTheMemoryKeeps) {
  const char* const view =
      R"({"window": {"time": 1}, "batch": 10, "order": {"shuffle": "global"}})";
  EXPECT_THAT(advice_on(view, 512 << 20),
              Contains(HasSubstr("\"order\": {\"shuffle\": \"block\"} would decode")));
  EXPECT_THAT(advice_on(view, std::uint64_t{8} << 30),
              Not(Contains(HasSubstr("block"))));  // all of it is kept
}

TEST(Advice, ABlockOrderThatMixesLittle) {
  const auto lines = advice_on(
      R"({"window": {"time": 1}, "batch": 10, "order": {"shuffle": "block", "buffer": 2}})");
  EXPECT_THAT(lines, Contains(HasSubstr("groups in \"order\" would mix samples better")));
}

}  // namespace advice_test
}  // namespace batchfs

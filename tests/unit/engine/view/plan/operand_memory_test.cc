#include "engine/view/plan/operand_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace operand_memory_test {

using testing::ElementsAre;

/// a and b(time, x), 10 by 8.
std::shared_ptr<const View> view(const std::string& tensors) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "x"}, {10, 8}, {1, 8})
      .declare("b", "<i2", {"time", "x"}, {10, 8}, {1, 8});
  return parse_view(data.dataset(),
                    R"({"window": {"time": 1}, "batch": 4, "tensors": )" + tensors + "}");
}

constexpr const char* kHypot = R"({"make": "wind_speed", "of": ["a", "b"]})";

TEST(OperandMemory, IsNoneForVariables) {
  const auto plain = view(R"({"t": {"variables": ["a"]}})");
  EXPECT_THAT(operand_sizes(*plain, 0), ElementsAre());
  EXPECT_EQ(operand_memory(*plain, 0), 0u);
}

TEST(OperandMemory, IsInFloat64ForEachSampleOfTheBatch) {
  const auto coarse = view(R"({"t": {"variables": ["a"], "coarsen": {"x": 4}}})");
  EXPECT_THAT(operand_sizes(*coarse, 0), ElementsAre(4 * 8 * 8));
  EXPECT_THAT(operand_sizes(*coarse, 2), ElementsAre(2 * 8 * 8));  // the last batch is short
  const auto made = view(fmt::format(R"({{"t": {{"variables": [{}]}}}})", kHypot));
  EXPECT_THAT(operand_sizes(*made, 0), ElementsAre(2 * 4 * 8 * 8));
}

TEST(OperandMemory, IsTheSumOverTensorsAndOperandsOfOperands) {
  const auto both = view(fmt::format(
      R"({{"t": {{"variables": [{}], "coarsen": {{"x": 4}}}}, "u": {{"variables": ["b"],
          "coarsen": {{"x": 2}}}}}})",
      kHypot));
  std::uint64_t sum = 0;
  for (const std::uint64_t size : operand_sizes(*both, 0)) sum += size;
  EXPECT_EQ(operand_memory(*both, 0), (1 + 2 + 1) * 4 * 8 * 8u);
  EXPECT_EQ(operand_memory(*both, 0), sum);
}

TEST(OperandMemory, StaysAtTheLargestNumber) {
  constexpr std::int64_t kLong = std::int64_t{1} << 31;
  MemoryData data;
  data.declare("a", "<i1", {"time", "y", "x"}, {1 << 10, kLong, 1 << 21}, {1, 1024, 1024});
  const auto huge = parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 1024,
      "tensors": {"t": {"variables": ["a"], "coarsen": {"y": 1048576, "x": 1048576}},
                  "u": {"variables": ["a"], "coarsen": {"y": 1048576, "x": 1048576}}}})");
  EXPECT_THAT(operand_sizes(*huge, 0), ElementsAre(UINT64_MAX, UINT64_MAX));
  EXPECT_EQ(operand_memory(*huge, 0), UINT64_MAX);
}

}  // namespace operand_memory_test
}  // namespace batchfs

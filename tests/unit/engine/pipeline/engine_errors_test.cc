#include "engine/pipeline/engine_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace engine_errors_test {

using testing::HasSubstr;

std::string refusal(std::uint64_t bytes, std::uint64_t operands, std::uint64_t budget) {
  try {
    check_batch_memory(bytes, operands, budget);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    return error.what();
  }
  return "";
}

TEST(CheckBatchMemory, RefusesABatchThatDoesNotFit) {
  EXPECT_EQ(refusal(100, 0, 100), "");
  EXPECT_THAT(refusal(3 << 20, 0, 1 << 20),
              HasSubstr("a batch of 3.0 MB is larger than the memory budget of 1.0 MB"));
}

TEST(CheckBatchMemory, NamesOperandsThatTakeTheRoom) {
  EXPECT_EQ(refusal(60, 40, 100), "");
  EXPECT_THAT(refusal(1 << 20, 8 << 20, 8 << 20),
              HasSubstr("a batch of 1.0 MB and 8.0 MB of operands of channels that are combined "
                        "are larger than the memory budget of 8.0 MB"));
  for (const std::uint64_t bytes : {std::uint64_t{1}, UINT64_MAX})
    EXPECT_THAT(refusal(bytes, UINT64_MAX, 100), HasSubstr("larger than"));
}

}  // namespace engine_errors_test
}  // namespace batchfs

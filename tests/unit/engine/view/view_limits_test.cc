#include "engine/view/view_limits.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace view_limits_test {

TEST(ViewLimits, LongDimensionsAreNotLookedThrough) {
  const auto dataset = MemoryData()
                           .declare("v", "<f4", {"x", "y"}, {1 << 26, (1 << 26) + 1}, {1 << 20, 1})
                           .dataset();
  check_restricted_length(*dataset, "x", "p");
  const Error error = error_of([&] { check_restricted_length(*dataset, "y", "p"); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_EQ(error.why(), "p: 'y' has 67108865 positions; the most is 67108864");
}

/// A dataset with so much memory.
std::shared_ptr<const Dataset> dataset_with(std::uint64_t memory) {
  MemoryData data;
  data.hierarchy.memory_limit = memory;
  return data.declare("v", "<f4", {"x"}, {4}, {4}).dataset();
}

TEST(ViewLimits, ListsGet16MBAndHalfOfTheMemory) {
  const auto dataset = dataset_with(64 << 20);
  check_list(*dataset, 48 << 20, "p", "the rows");
  const Error error = error_of([&] { check_list(*dataset, (48 << 20) + 1, "p", "the rows"); });
  EXPECT_EQ(error.code(), ErrorCode::no_memory);
  EXPECT_THAT(error.why(), testing::StartsWith("p: the rows take 48"));
  EXPECT_THAT(error.why(), testing::HasSubstr("give more with --memory"));
  check_list(*dataset_with(0), UINT64_MAX, "p", "the rows");
}

TEST(ViewLimits, StartsAreRefusedBeforeTheyTakeTooMuch) {
  const auto dataset = dataset_with(1 << 20);
  const std::string path = "p";
  GrowingStarts starts(*dataset, path);
  const Error error = error_of([&] {
    for (std::int64_t i = 0; i < INT64_C(1) << 24; ++i) starts.push_back(i);
  });
  EXPECT_EQ(error.code(), ErrorCode::no_memory);
  EXPECT_LE(starts.size() * 8, (16 << 20) + (1 << 19));
  EXPECT_GE(starts.size() * 8, 16 << 20);
}

TEST(ViewLimits, LabelsOfAViewFitTwice) {
  EXPECT_EQ(max_coordinates(*dataset_with(64 << 20)), 24U << 20);
  EXPECT_EQ(max_coordinates(*dataset_with(1 << 20)), (8U << 20) + (1 << 18));
  EXPECT_EQ(max_coordinates(*dataset_with(std::uint64_t{8} << 30)), 64U << 20);
  EXPECT_EQ(max_coordinates(*dataset_with(0)), 64U << 20);
}

}  // namespace view_limits_test
}  // namespace batchfs

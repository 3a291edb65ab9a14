#include "engine/view/tensors/tensor_definitions.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace tensor_definitions_test {

TensorDefinition tensor_with(const std::vector<std::int64_t>& steps) {
  TensorDefinition tensor{.name = "x"};
  tensor.offsets.emplace_back("time", steps);
  return tensor;
}

TEST(TensorDefinitions, EachVariableIsATensorOfItsName) {
  const auto definitions = definitions_of({"t", "q"});
  ASSERT_EQ(definitions.size(), 2u);
  EXPECT_EQ(definitions[1].name, "q");
  EXPECT_EQ(definitions[1].variables, std::vector<std::string>{"q"});
  EXPECT_EQ(definitions[1].path, "variables[1]");
}

TEST(TensorDefinitions, OffsetsGoBeforeAndAfterTheWindow) {
  const std::vector<TensorDefinition> tensors = {tensor_with({-1, 0}), tensor_with({2}),
                                                 TensorDefinition{.name = "y"}};
  EXPECT_EQ(offset_range(tensors, "time"), std::pair(INT64_C(-1), INT64_C(2)));
  EXPECT_EQ(offset_range(tensors, "x"), std::pair(INT64_C(0), INT64_C(0)));
  EXPECT_EQ(offset_range({tensor_with({3})}, "time"), std::pair(INT64_C(0), INT64_C(3)));
}

TEST(TensorDefinitions, ReservedStepsCount) {
  OffsetList reserve{.dim = "time"};
  reserve.steps = {-4, 1};
  const auto ranges = reserved_ranges({tensor_with({-1, 2})}, {reserve}, {{"time"}, {"x"}});
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0], std::pair(INT64_C(-4), INT64_C(2)));
  EXPECT_EQ(ranges[1], std::pair(INT64_C(0), INT64_C(0)));
}

}  // namespace tensor_definitions_test
}  // namespace batchfs

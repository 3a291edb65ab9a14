#include "engine/view/mix/mixed_plan.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace mixed_plan_test {

/// A chunk with a part in tensor 0 and one in the first operand, of a view with one tensor.
BatchPlan plan_of_component() {
  BatchPlan plan;
  plan.chunks.push_back({.variable = 1, .chunk = 7, .first_part = 0, .part_count = 2});
  plan.parts.resize(2);
  plan.parts[0].tensor = 0;
  plan.parts[0].repeat = -1;
  plan.parts[1].tensor = 1;
  plan.parts[1].repeat = 0;
  plan.repeats.resize(1);
  plan.given.push_back({.sample = 5});
  plan.padded = {1, 2};
  return plan;
}

TEST(MixedPlan, NumbersOfAComponentFollowThoseBeforeIt) {
  BatchPlan plan;
  append_plan(plan_of_component(), {}, 1, plan);
  append_plan(plan_of_component(), {.sample = 100, .variable = 3, .made = 2, .combination = 4}, 1,
              plan);
  ASSERT_EQ(plan.chunks.size(), 2u);
  EXPECT_EQ(plan.chunks[0].variable, 1u);
  EXPECT_EQ(plan.chunks[1].variable, 4u);
  EXPECT_EQ(plan.chunks[1].chunk, 7);
  EXPECT_EQ(plan.chunks[1].first_part, 2u);
  ASSERT_EQ(plan.parts.size(), 4u);
  EXPECT_EQ(plan.parts[2].tensor, 0u) << "the tensors are those of the mixture";
  EXPECT_EQ(plan.parts[2].repeat, -1);
  EXPECT_EQ(plan.parts[3].tensor, 5u) << "an operand";
  EXPECT_EQ(plan.parts[3].repeat, 1);
  ASSERT_EQ(plan.given.size(), 2u);
  EXPECT_EQ(plan.given[0].sample, 5);
  EXPECT_EQ(plan.given[1].sample, 105);
  ASSERT_EQ(plan.padded.size(), 6u);
  EXPECT_EQ(plan.padded[0], 2);
  EXPECT_EQ(plan.padded[1], 2);
  EXPECT_EQ(plan.padded[5], 2);
}

}  // namespace mixed_plan_test
}  // namespace batchfs

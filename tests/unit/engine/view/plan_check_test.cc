#include "engine/view/plan_check.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace plan_check_test {

using testing::HasSubstr;

constexpr std::int64_t kFar = INT64_MAX / 2;

MemoryData stores() {
  MemoryData data;
  data.declare("v", "<i4", {"t", "y", "x"}, {8, 3, 4}, {3, 2, 4})
      .declare("m", "<f4", {"y", "x"}, {3, 4}, {3, 4})
      .declare("f", "<f4", {"t", "y", "x"}, {8, 3, 4}, {3, 3, 4});
  return data;
}

/// The fault that the check finds in a plan after `change`; empty: none.
std::string fault(const std::string& view, const std::function<void(BatchPlan&)>& change) {
  const auto v = parse_view(stores().dataset(), view);
  BatchPlan plan = v->plan(0, 0);
  check_plan(*v, plan);  // right before
  change(plan);
  const auto mistake = find_mistake(*v, plan);
  if (mistake) {
    EXPECT_EQ(mistake->code(), ErrorCode::internal);
  }
  return mistake ? mistake->what() : "";
}

constexpr const char* kWindows =
    R"({"window": {"t": {"size": 2, "stride": 2}}, "variables": ["v"], "batch": 3})";
constexpr const char* kPadded =
    R"({"window": {"t": {"size": 3, "stride": 3, "edge": "pad"}}, "variables": ["v"], "batch": 3})";
constexpr const char* kStack = R"({"window": {"t": 1}, "batch": 2, "tensors": {"x":
    {"variables": ["f", "m"], "stack": "c", "broadcast": true}}})";
constexpr const char* kCoarse = R"({"window": {"t": 2}, "batch": 2, "tensors": {"x":
    {"variables": ["f"], "coarsen": {"x": 2}}}})";

TEST(PlanCheck, ABoxLiesInItsChunk) {
  for (const auto& change :
       std::vector<std::function<void(Part&)>>{[](Part& part) { part.source.start[0] = 2; },
                                               [](Part& part) { part.source.start[2] = -1; },
                                               [](Part& part) { part.source.shape[1] = 3; },
                                               [](Part& part) { part.source.start[0] = kFar; },
                                               [](Part& part) {
                                                 part.source.start[0] = INT64_MAX;
                                                 part.source.shape[0] = INT64_MAX;
                                               },
                                               [](Part& part) { part.source.shape[1] = -1; },
                                               [](Part& part) { part.source.start = Dims(2); },
                                               [](Part& part) { part.source.shape = Dims(2, 1); }})
    EXPECT_THAT(fault(kWindows, [&](BatchPlan& plan) { change(plan.parts[0]); }),
                HasSubstr("source"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.chunks[0].chunk = 6; }),
              HasSubstr("no such chunk"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.chunks[0].chunk = -1; }),
              HasSubstr("no such chunk"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.chunks[0].variable = 9; }),
              HasSubstr("no such variable"));
}

TEST(PlanCheck, ABoxLiesInItsTensor) {
  for (const auto& change : std::vector<std::function<void(Part&)>>{
           [](Part& part) { part.offset -= 4; }, [](Part& part) { part.offset = kFar; },
           [](Part& part) { part.offset = 6 * 3 * 4 * 4 - 4; },
           [](Part& part) { part.strides[0] = kFar; },
           [](Part& part) { part.strides[0] = INT64_MIN; },
           [](Part& part) { part.strides[0] *= -1; }, [](Part& part) { part.strides = Dims(2); },
           [](Part& part) { part.tensor = 7; }})
    EXPECT_THAT(fault(kWindows, [&](BatchPlan& plan) { change(plan.parts[0]); }),
                HasSubstr("is wrong in"));
}

TEST(PlanCheck, EveryElementIsPlannedOnce) {
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.parts[0].source.shape[0] -= 1; }),
              HasSubstr("72 elements are planned"));
  EXPECT_THAT(fault(kWindows,
                    [](BatchPlan& plan) {
                      --plan.chunks.back().part_count;
                      plan.parts.pop_back();
                    }),
              HasSubstr("72 elements are planned"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.parts.pop_back(); }),
              HasSubstr("parts are missing"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.parts.push_back(plan.parts[0]); }),
              HasSubstr("parts of no chunk"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.chunks[1].first_part = 0; }),
              HasSubstr("parts of two chunks"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.shapes[0][0] = 2; }),
              HasSubstr("is wrong"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.shapes[0][0] = 4; }),
              HasSubstr("of 96 elements"));
  EXPECT_THAT(fault(kWindows, [](BatchPlan& plan) { plan.shapes.clear(); }),
              HasSubstr("other tensors"));
}

TEST(PlanCheck, Padding) {
  EXPECT_THAT(fault(kPadded, [](BatchPlan& plan) { plan.paddings[0].offset = kFar; }),
              HasSubstr("is wrong"));
  EXPECT_THAT(fault(kPadded, [](BatchPlan& plan) { plan.paddings[0].shape[0] = 9; }),
              HasSubstr("a box from byte"));
  EXPECT_THAT(fault(kPadded, [](BatchPlan& plan) { plan.paddings[0].tensor = 1; }),
              HasSubstr("no such tensor"));
  EXPECT_THAT(fault(kPadded, [](BatchPlan& plan) { plan.padded[0] -= 1; }),
              HasSubstr("elements are planned"));
  EXPECT_THAT(fault(kPadded, [](BatchPlan& plan) { plan.padded = {INT64_MAX}; }),
              HasSubstr("too many elements"));
}

TEST(PlanCheck, Repetitions) {
  EXPECT_THAT(fault(kStack,
                    [](BatchPlan& plan) {
                      for (Part& part : plan.parts)
                        if (part.repeat >= 0) part.repeat = 5;
                    }),
              HasSubstr("no such repetition"));
  EXPECT_THAT(fault(kStack, [](BatchPlan& plan) { plan.repeats.at(0).counts[0] = kFar; }),
              HasSubstr("is wrong"));
  EXPECT_THAT(fault(kStack, [](BatchPlan& plan) { plan.repeats.at(0).counts[0] += 1; }),
              HasSubstr("is wrong"));
  EXPECT_THAT(fault(kStack, [](BatchPlan& plan) { plan.repeats.at(0).counts.push_back(2); }),
              HasSubstr("a wrong repetition"));
}

TEST(PlanCheck, OperandsOfCombinedChannels) {
  EXPECT_THAT(fault(kCoarse, [](BatchPlan& plan) { plan.combined.pop_back(); }),
              HasSubstr("elements are planned"));
  EXPECT_THAT(fault(kCoarse, [](BatchPlan& plan) { plan.combined[0].combination = 3; }),
              HasSubstr("no such channel"));
  EXPECT_THAT(fault(kCoarse, [](BatchPlan& plan) { plan.combined[0].operands = kFar; }),
              HasSubstr("operands that are not there"));
  EXPECT_THAT(fault(kCoarse, [](BatchPlan& plan) { plan.combined[1].offset += 4; }),
              HasSubstr("a box from byte"));
  EXPECT_THAT(fault(kCoarse, [](BatchPlan& plan) { plan.parts[0].offset = -8; }),
              HasSubstr("operands"));
}

}  // namespace plan_check_test
}  // namespace batchfs

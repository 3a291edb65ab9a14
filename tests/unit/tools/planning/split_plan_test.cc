#include "tools/planning/split_plan.h"

#include <gmock/gmock.h>

#include "engine/view/spec.h"
#include "engine/view/split/split_spec.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace split_plan_test {

using testing::HasSubstr;

SplitPlan plan(const std::string& split) {
  std::vector<std::int64_t> days = counting<std::int64_t>(100);
  days[50] = 1000;  // a window across it is not a sample of any part
  for (std::size_t i = 51; i < 100; ++i) days[i] = 1000 + static_cast<std::int64_t>(i) - 50;
  const auto dataset = MemoryData()
                           .declare("v", "<f4", {"time"}, {100}, {10})
                           .index("time", "<M8[D]", days)
                           .dataset();
  const std::string text =
      R"({"name": "w", "window": {"time": {"size": 2, "stride": 1}}, "batch": 5,
      "samples": {"spacing": {"time": "1d"}}, "split": )" +
      split + "}";
  std::vector<std::shared_ptr<const View>> views;
  for (const std::string& part : split_names(text, "f"))
    views.push_back(View::parse(dataset, text, "v", "f", {.part = part}));
  return plan_parts(views);
}

TEST(SplitPlan, PartsAndTheRestAddUp) {
  const SplitPlan found = plan(
      R"({"parts": {"train": "rest", "val": [{"time": {"from": "#20", "to": "#30"}}]}, "gap": {"time": 2}})");
  EXPECT_EQ(found.view, "w");
  EXPECT_EQ(found.windows, 99);
  EXPECT_THAT(found.dropped, testing::ElementsAre(testing::Pair("spacing", 1)));
  ASSERT_EQ(found.groups.size(), 1u);
  const SplitPlan::Group& group = found.groups[0];
  EXPECT_EQ(group.parts[0].gap, 4);
  EXPECT_EQ(group.parts[1].samples, 9);
  EXPECT_EQ(group.straddling, 2);
  EXPECT_EQ(group.parts[0].windows + group.parts[1].windows + group.straddling, 98);
  EXPECT_EQ(group.parts[0].samples + group.parts[0].gap, group.parts[0].windows);
  const std::string text = split_text(found, true);
  EXPECT_THAT(text, HasSubstr("View w: 99 windows in 2 parts"));
  EXPECT_THAT(text, HasSubstr("Not samples of any part: 1 by spacing"));
  EXPECT_THAT(text, HasSubstr("leak check: 0 positions shared, nearest train-val distance 3d"));
  const Json json = split_json(found, Json::object());
  EXPECT_EQ(json["split"]["straddling"], 2);
  EXPECT_EQ(json["split"]["parts"]["train"]["gap"], 4);
  EXPECT_EQ(json["split"]["leak_check"]["shared"], 0);
  EXPECT_EQ(json["split"]["leak_check"]["nearest"][0]["positions"], 3);
}

TEST(SplitPlan, EachFoldIsCheckedByItself) {
  const SplitPlan found = plan(R"({"blocks": {"time": 10}, "folds": 3})");
  ASSERT_EQ(found.groups.size(), 3u);
  for (const SplitPlan::Group& group : found.groups) {
    EXPECT_EQ(group.parts[0].windows + group.parts[1].windows + group.straddling, 98);
    EXPECT_EQ(group.leaks.shared, 0);
  }
  EXPECT_EQ(split_json(found, Json::object())["folds"][2]["fold"], 2);
}

}  // namespace split_plan_test
}  // namespace batchfs

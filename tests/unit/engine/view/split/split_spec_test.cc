#include "engine/view/split/split_spec.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace split_spec_test {

using testing::ElementsAre;
using testing::HasSubstr;

SplitSpec parsed(const std::string& text) {
  const Json json = parse_json(R"({"split": )" + text + "}", "");
  return parse_split(JsonRef(json, "").at("split"));
}

std::string refused(const std::string& text) {
  return error_of([&] { parsed(text); }).why();
}

TEST(SplitSpec, Regions) {
  const SplitSpec split = parsed(
      R"({"parts": {"train": "rest", "val": [{"time": "2016"}, {"time": "2018", "x": [1, 2]}]},
          "gap": {"time": "10d", "x": 3}})");
  EXPECT_THAT(split.names(), ElementsAre("train", "val"));
  EXPECT_TRUE(split.parts[0].rest);
  EXPECT_FALSE(split.is_drawn());
  ASSERT_EQ(split.parts[1].regions.size(), 2u);
  EXPECT_EQ(split.parts[1].regions[1].path, "split.parts.val[1]");
  EXPECT_EQ(split.parts[1].regions[1].box.size(), 2u);
  EXPECT_EQ(split.gap[0].duration->nanoseconds, INT64_C(864'000'000'000'000));
  EXPECT_EQ(split.gap[1].positions, 3);
}

TEST(SplitSpec, FoldsMakeTwoPartsEach) {
  const SplitSpec split = parsed(R"({"groups": {"basin": "value"}, "folds": 2, "seed": 4})");
  EXPECT_THAT(split.names(),
              ElementsAre("fold-0-train", "fold-0-val", "fold-1-train", "fold-1-val"));
  EXPECT_TRUE(split.by_hash);
  EXPECT_EQ(split.seed, 4u);
  const SplitPart part = find_part(split, "fold-1-train", "--part");
  EXPECT_EQ(part.part, 0u);
  EXPECT_EQ(part.fold, 1);
}

TEST(SplitSpec, MessagesNameTheKeyAndTheValue) {
  EXPECT_THAT(refused("{}"), HasSubstr("split: name the parts"));
  EXPECT_THAT(refused(R"({"parts": {"a": "rest", "b": "rest"}})"),
              HasSubstr("split.parts.b: 'a' is the rest already"));
  EXPECT_THAT(refused(R"({"parts": {"a": "rest"}})"), HasSubstr("'a' is the rest of nothing"));
  EXPECT_THAT(refused(R"({"parts": {"a": "others"}})"),
              HasSubstr("split.parts.a: 'others' is not a part: write \"rest\""));
  EXPECT_THAT(refused(R"({"parts": {"a/b": [{"time": 1}]}})"),
              HasSubstr("'a/b' cannot be in a file"));
  EXPECT_THAT(refused(R"({"parts": {"a": [{"time": 1}]}, "seed": 1})"),
              HasSubstr("split.seed: it goes"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}})"), HasSubstr("split: how blocks are shared out"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "fractions": {"a": 0.8, "b": 0.1}})"),
              HasSubstr("split.fractions: the fractions add up to 0.9, not to 1"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "fractions": {"a": 1.2, "b": -0.2}})"),
              HasSubstr("split.fractions.a: 1.2 is not a fraction"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "folds": 1})"), HasSubstr("split.folds"));
  EXPECT_THAT(refused(R"({"blocks": {"time": "0d"}, "folds": 2})"),
              HasSubstr("'0d' is not more than 0"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "groups": {"time": "year"}, "folds": 2})"),
              HasSubstr("split.groups: a split has either this or split.blocks"));
  EXPECT_THAT(
      refused(R"({"groups": {"time": "yaer"}, "folds": 2})"),
      HasSubstr(
          "split.groups.time: 'yaer' is none of value, year, month, day, season, did you mean"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "folds": 2, "gap": {"time": "1mo"}})"),
              HasSubstr("split.gap.time: '1mo' has no fixed length"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "folds": 2, "with": {"vla": {}}})"),
              HasSubstr("split.with.vla: there is no part 'vla', did you mean 'val'?"));
  EXPECT_THAT(refused(R"({"blocks": {"time": 3}, "folds": 2, "test_size": 0.2})"),
              HasSubstr("\"fractions\": {\"train\": 0.8"));
}

TEST(SplitSpec, APartIsChosenByNameOrFirst) {
  const Json json = parse_json(
      R"({"order": {"seed": 1}, "split": {"blocks": {"time": 3}, "folds": 2,
          "with": {"val": {"order": {"seed": 2}}}}})",
      "");
  const JsonRef view(json, "");
  EXPECT_THAT(error_of([&] { choose_part(view, std::nullopt, false); }).why(),
              HasSubstr("split: the view has 4 parts, fold-0-train, fold-0-val"));
  EXPECT_THAT(error_of([&] { choose_part(view, "fold-2-val", false); }).why(),
              HasSubstr("--part: there is no part 'fold-2-val', did you mean 'fold-0-val'?"));
  const ChosenPart first = choose_part(view, std::nullopt, true);
  EXPECT_EQ(first.suffix, "-fold-0-train");
  EXPECT_EQ(find_of_part(view, first, "order")->path(), "order");
  const ChosenPart val = choose_part(view, "fold-1-val", false);
  EXPECT_EQ(find_of_part(view, val, "order")->path(), "split.with.val.order");
  EXPECT_EQ(find_of_part(view, val, "batch"), std::nullopt);
  const Json written = split_json(json["split"], val.part);
  EXPECT_EQ(written["part"], "fold-1-val");
  EXPECT_FALSE(written.contains("with"));
  const Json plain = parse_json("{}", "");
  EXPECT_THAT(error_of([&] { choose_part(JsonRef(plain, ""), "val", false); }).why(),
              HasSubstr("--part val: the view has no \"split\""));
}

TEST(SplitSpec, NamesOfTheViewsOfAFile) {
  EXPECT_THAT(
      split_names(R"({"split": {"blocks": {"t": 2}, "fractions": {"b": 0.5, "a": 0.5}}})", "f"),
      ElementsAre("b", "a"));
  EXPECT_TRUE(split_names("{}", "f").empty());
  EXPECT_TRUE(
      split_names(R"({"split": {"blocks": {"t": 2}, "folds": 2, "part": "fold-0-val"}})", "f")
          .empty());
}

}  // namespace split_spec_test
}  // namespace batchfs

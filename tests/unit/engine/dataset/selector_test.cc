#include "engine/dataset/selector.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace selector_test {

using testing::HasSubstr;

TEST(Selector, ColonsOfTimesDoNotSplitRanges) {
  const Selector one = parse_selector("2000-01-01T06:00:00", "");
  EXPECT_EQ(one.form, Selector::Form::one);
  const Selector range = parse_selector("2000-01-01T06:00:2000-01-01T12:00:00", "");
  EXPECT_EQ(range.form, Selector::Form::range);
  EXPECT_EQ(range.from, "2000-01-01T06:00");
  EXPECT_EQ(range.to, "2000-01-01T12:00:00");
  const Selector open = parse_selector(":2000-01-01T06:00", "");
  EXPECT_EQ(open.from, std::nullopt);
  EXPECT_EQ(open.to, "2000-01-01T06:00");
  EXPECT_EQ(parse_selector(":", "").form, Selector::Form::range);
  EXPECT_EQ(parse_selector("a,b", "").values, (std::vector<std::string>{"a", "b"}));
}

TEST(Selector, OfJsonHasTheSameForms) {
  const auto of = [](const Json& json) { return parse_selector(JsonRef(json, "select.x")); };
  EXPECT_EQ(of(500).values, std::vector<std::string>{"500"});
  EXPECT_EQ(of({"a", 2}).form, Selector::Form::list);
  EXPECT_EQ(of({"a", 2}).values, (std::vector<std::string>{"a", "2"}));
  const Selector range = of({{"from", 350}, {"to", 30}, {"wrap", true}});
  EXPECT_EQ(range.form, Selector::Form::range);
  EXPECT_EQ(range.from, "350");
  EXPECT_TRUE(range.wrap);
  EXPECT_EQ(of(500).where, "select.x");
  EXPECT_THROW(of(Json::array()), Error);
  EXPECT_THROW(of({{"start", 1}}), Error);
}

TEST(Selector, ARangeInOneLabelIsAnsweredWithTheObject) {
  EXPECT_THAT(meant_range("500:850"), HasSubstr(R"({"from": 500, "to": 850})"));
  EXPECT_EQ(meant_range("500"), "");
  EXPECT_EQ(meant_range("500:"), "");
  EXPECT_EQ(meant_range("2000-01-01T06:00:00"), "");
}

}  // namespace selector_test
}  // namespace batchfs

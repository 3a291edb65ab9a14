#include "engine/dataset/selector.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace selector_test {

using testing::HasSubstr;

using Form = SelectorPart::Form;

SelectorPart only(const Selector& selector) {
  EXPECT_EQ(selector.parts.size(), 1u);
  return selector.parts.front();
}

std::vector<std::string> values(const Selector& selector) {
  std::vector<std::string> result;
  for (const SelectorPart& part : selector.parts) result.push_back(part.value);
  return result;
}

TEST(Selector, ColonsOfTimesDoNotSplitRanges) {
  const auto text = [](const char* typed) { return only(parse_selector(typed, "")); };
  EXPECT_EQ(text("2000-01-01T06:00:00").form, Form::one);
  const SelectorPart range = text("2000-01-01T06:00:2000-01-01T12:00:00");
  EXPECT_EQ(range.form, Form::range);
  EXPECT_EQ(range.from, "2000-01-01T06:00");
  EXPECT_EQ(range.to, "2000-01-01T12:00:00");
  const SelectorPart open = text(":2000-01-01T06:00");
  EXPECT_EQ(open.from, std::nullopt);
  EXPECT_EQ(open.to, "2000-01-01T06:00");
  EXPECT_EQ(text(":").form, Form::range);
  EXPECT_EQ(text("2000-02-30:2000-03").from, "2000-02-30");  // a date in the calendar 360_day
  EXPECT_EQ(values(parse_selector("a,b", "")), (std::vector<std::string>{"a", "b"}));
}

TEST(Selector, WordsStandBehindLabelsAndRanges) {
  const SelectorPart range = only(parse_selector("350:30:wrap:step=2", ""));
  EXPECT_TRUE(range.wrap);
  EXPECT_EQ(range.step, 2);
  EXPECT_EQ(only(parse_selector("2000-01-01T06:00::step=3", "")).from, "2000-01-01T06:00");
  const Selector nearest = parse_selector("51.3,52.1:nearest:tolerance=0.2", "");
  EXPECT_EQ(values(nearest), (std::vector<std::string>{"51.3", "52.1"}));
  for (const SelectorPart& part : nearest.parts) {
    EXPECT_EQ(part.form, Form::nearest);
    EXPECT_EQ(part.tolerance, "0.2");
  }
  EXPECT_EQ(only(parse_selector("a:wrap", "")).to, "wrap");  // two labels that are texts
  const Selector ranges = parse_selector("2000:2010,2015:2020:step=2", "");
  ASSERT_EQ(ranges.parts.size(), 2u);
  EXPECT_TRUE(ranges.is_list);
  EXPECT_EQ(ranges.parts[0].to, "2010");
  EXPECT_EQ(ranges.parts[0].step, 1);
  EXPECT_EQ(ranges.parts[1].step, 2);
  for (const auto& [typed, says] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1:2:step=0", "the step '0' is not a whole number from 1 on"},
           {"1:2:step=x", "the step 'x' is not"},
           {"1:2:step=99999999999999999999", "is not a whole number"},
           {"5:step=2", "are for ranges"},
           {"1:2:nearest", "are for labels"},
           {"5:tolerance=1", "goes with \"nearest\""},
           {"1:2,5:nearest", "is for labels, not for ranges"},
           {"5:nearest,6", "stands at its end"}})
    EXPECT_THAT(error_of([&, &t = typed] { parse_selector(t, "--select"); }).what(),
                HasSubstr(says))
        << typed;
}

TEST(Selector, OfJsonHasTheSameForms) {
  const auto of = [](const Json& json) { return parse_selector(JsonRef(json, "select.x")); };
  EXPECT_EQ(values(of(500)), std::vector<std::string>{"500"});
  EXPECT_FALSE(of(500).is_list);
  EXPECT_TRUE(of({"a", 2}).is_list);
  EXPECT_EQ(values(of({"a", 2})), (std::vector<std::string>{"a", "2"}));
  const SelectorPart range = only(of({{"from", 350}, {"to", 30}, {"wrap", true}, {"step", 2}}));
  EXPECT_EQ(range.form, Form::range);
  EXPECT_EQ(range.from, "350");
  EXPECT_TRUE(range.wrap);
  EXPECT_EQ(range.step, 2);
  const Selector ranges = of({{{"from", 1}, {"to", 2}}, {{"month", {6, 7}}, {"hour", 0}}, 9});
  ASSERT_EQ(ranges.parts.size(), 3u);
  EXPECT_EQ(ranges.parts[1].fields.text(), "month 6, 7 and hour 0");
  const Selector nearest = of({{"nearest", {1.5, 2}}, {"tolerance", 0.5}});
  EXPECT_TRUE(nearest.is_list);
  EXPECT_EQ(nearest.parts[1].value, "2");
  EXPECT_EQ(nearest.parts[1].tolerance, "0.5");
  EXPECT_FALSE(of({{"nearest", 1.5}}).is_list);
  EXPECT_EQ(of(500).where, "select.x");
  EXPECT_THROW(of(Json::array()), Error);
  EXPECT_THROW(of({{"start", 1}}), Error);
  EXPECT_THROW(of({{"step", 0}}), Error);
  EXPECT_THROW(of({{"nearest", Json::array()}}), Error);
  EXPECT_THROW(of({{"nearest", 1}, {"from", 1}}), Error);
}

TEST(Selector, ANumberBelow64BitsIsNotTheLeastInteger) {
  for (const char* text : {"-9223372036854775809", "[1, -9223372036854775809]"}) {
    const Json json = parse_json(text, "");
    EXPECT_THAT(error_of([&] { parse_selector(JsonRef(json, "c")); }).why(),
                testing::HasSubstr("less than an integer of 64 bits"));
  }
  const Json least = parse_json("-9223372036854775808", "");
  EXPECT_EQ(parse_selector(JsonRef(least, "c")).parts[0].value, "-9223372036854775808");
}

TEST(Selector, ARangeInOneLabelIsAnsweredWithTheObject) {
  EXPECT_THAT(meant_range("500:850"), HasSubstr(R"({"from": 500, "to": 850})"));
  EXPECT_EQ(meant_range("500"), "");
  EXPECT_EQ(meant_range("500:"), "");
  EXPECT_EQ(meant_range("2000-01-01T06:00:00"), "");
}

}  // namespace selector_test
}  // namespace batchfs

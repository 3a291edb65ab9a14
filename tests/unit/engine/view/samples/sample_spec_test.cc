#include "engine/view/samples/sample_spec.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace sample_spec_test {

using testing::HasSubstr;

SampleSpec parse(const std::string& text) {
  const Json json = parse_json(text, "");
  return parse_samples({json, "samples"});
}

std::string refusal(const std::string& text) {
  return error_of([&] { parse(text); }).why();
}

TEST(SampleSpec, Spacing) {
  const SampleSpec spec = parse(R"({"spacing": {"time": "6h", "date": "1mo"}})");
  ASSERT_EQ(spec.spacing.size(), 2u);
  EXPECT_EQ(spec.spacing_along("date")->step, (Duration{.months = 1}));
  EXPECT_EQ(spec.spacing_along("time")->path, "samples.spacing.time");
  EXPECT_EQ(spec.spacing_along("x"), nullptr);
  EXPECT_THAT(refusal(R"({"spacing": "6h"})"), HasSubstr("samples.spacing: expected an object"));
  EXPECT_THAT(refusal(R"({"spacing": {"time": "0h"}})"), HasSubstr("samples.spacing.time: '0h'"));
  EXPECT_THAT(refusal(R"({"frequency": "6h"})"), HasSubstr("write \"spacing\""));
}

TEST(SampleSpec, Where) {
  const SampleSpec spec = parse(R"({"where": {
      "time": {"month": [8, 6, 6], "season": ["SON"], "from": "2000", "of": "footprint"},
      "x": [1, 2], "y": {"to": 3}}})");
  ASSERT_EQ(spec.where.size(), 3u);
  const SampleSpec::Where& time = spec.where[0];
  ASSERT_EQ(time.selector.parts.size(), 1u);
  EXPECT_EQ(time.selector.parts[0].fields.text(), "month 8, 6, 6 and season SON");
  EXPECT_EQ(time.selector.parts[0].from, "2000");
  EXPECT_TRUE(time.footprint);
  EXPECT_FALSE(spec.where[1].footprint);
  EXPECT_EQ(spec.where[1].selector.parts.size(), 2u);
  EXPECT_EQ(spec.where[2].path, "samples.where.y");
  for (const SampleSpec::Where& each :
       parse(R"({"where": {"of": "footprint", "x": 1, "y": {"to": 3}}})").where)
    EXPECT_TRUE(each.footprint);
  EXPECT_THAT(refusal(R"({"where": {"time": {"hour": [24]}}})"),
              HasSubstr("samples.where.time.hour[0]: '24' is not an hour"));
  EXPECT_THAT(refusal(R"({"where": {"time": {"mont": [2]}}})"), HasSubstr("did you mean 'month'"));
  EXPECT_THAT(refusal(R"({"where": {"time": {"of": "start"}}})"),
              HasSubstr("name a field of the calendar"));
}

TEST(SampleSpec, OffsetsAreOfOneKind) {
  const auto offsets = [](const std::string& text) {
    const Json json = parse_json(text, "");
    return parse_offsets("time", {json, "o"});
  };
  EXPECT_EQ(offsets("[-1, 0]").steps, (std::vector<std::int64_t>{-1, 0}));
  EXPECT_EQ(offsets(R"(["-6h", "1mo"])").durations.size(), 2u);
  EXPECT_THAT(error_of([&] { offsets(R"([1, "6h"])"); }).why(), HasSubstr("o[1]: \"6h\" is a"));
  EXPECT_THAT(error_of([&] { offsets("[]"); }).why(), HasSubstr("o: the list is empty"));
  std::string many = "[\"1h\"";
  for (int i = 0; i < 1024; ++i) many += ",\"1h\"";
  EXPECT_THAT(error_of([&] { offsets(many + "]"); }).why(), HasSubstr("1025 lengths of time"));
}

}  // namespace sample_spec_test
}  // namespace batchfs

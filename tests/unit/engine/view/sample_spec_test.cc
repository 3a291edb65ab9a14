#include "engine/view/sample_spec.h"

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

}  // namespace sample_spec_test
}  // namespace batchfs

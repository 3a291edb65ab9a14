#include "engine/view/made/made_spec.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace made_spec_test {

using testing::ElementsAre;
using testing::HasSubstr;

TensorVariables parsed(const std::string& json) {
  const Json document = parse_json(json, "");
  return parse_tensor_variables(JsonRef(document, "v"));
}
std::string refusal(const std::string& json) {
  const Error error = error_of([&] { parsed(json); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  return error.why();
}

TEST(MadeSpec, StandsBetweenVariables) {
  const TensorVariables variables = parsed(
      R"(["a", {"make": "cos_latitude"}, "b", {"make": "constant", "value": 2, "name": "two"}])");
  EXPECT_THAT(variables.stored, ElementsAre("a", "b"));
  ASSERT_EQ(variables.made.size(), 2u);
  EXPECT_EQ(variables.made[0].name, "cos_latitude");
  EXPECT_EQ(variables.made[0].place, 1u);
  EXPECT_EQ(variables.made[0].path, "v[1]");
  EXPECT_EQ(variables.made[1].name, "two");
  EXPECT_EQ(variables.made[1].place, 3u);
  EXPECT_EQ(variables.made[1].value, 2);
}

TEST(MadeSpec, EveryKindIsFoundByItsName) {
  for (const std::string& name : made_kind_names()) EXPECT_EQ(find_made_kind(name)->name, name);
  EXPECT_EQ(find_made_kind("none"), nullptr);
}

TEST(MadeSpec, TheSameChannelMayStandTwice) {
  const auto all = parsed(R"([{"make": "toa_radiation", "mean": "1h", "name": "a"},
                              {"make": "toa_radiation", "mean": "60min", "name": "b"},
                              {"make": "toa_radiation", "name": "c"}])")
                       .made;
  EXPECT_TRUE(all[0].same_channel(all[1]));
  EXPECT_FALSE(all[0].same_channel(all[2]));
}

TEST(MadeSpec, MistakesNameTheirKey) {
  EXPECT_THAT(
      refusal(R"([{"make": "cos_latitudes"}])"),
      HasSubstr("v[0].make: there is no channel 'cos_latitudes', did you mean 'cos_latitude'"));
  EXPECT_THAT(refusal(R"([{"make": "cos_latitude", "value": 1}])"), HasSubstr("v[0].value"));
  EXPECT_THAT(refusal(R"([{"make": "constant"}])"), HasSubstr("value"));
  EXPECT_THAT(refusal(R"([{"make": "insolation", "mean": "1mo"}])"), HasSubstr("v[0].mean"));
  EXPECT_THAT(refusal(R"([{"make": "insolation", "units": "radians"}])"), HasSubstr("v[0].units"));
  EXPECT_THAT(refusal(R"(["a", {"make": "constant", "value": 1, "name": "a"}])"),
              HasSubstr("v[1]: 'a' is given twice"));
  EXPECT_EQ(refusal("[]"), "v: the list is empty");
  EXPECT_THAT(refusal(R"({"make": "constant"})"), HasSubstr("expected a list"));
}

}  // namespace made_spec_test
}  // namespace batchfs

#include "engine/view/coarsen/coarsen_spec.h"

#include <gmock/gmock.h>

namespace batchfs {
namespace coarsen_spec_test {

std::vector<CoarsenStep> parsed(const char* text) {
  const Json json = Json::parse(text);
  return parse_coarsen(JsonRef(json, "coarsen"));
}

std::string refused(const char* text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.why();
  }
  return "";
}

TEST(CoarsenSpec, HasSizesAndMethods) {
  const auto steps =
      parsed(R"({"latitude": 2, "time": {"size": 6, "how": "sum"}, "y": {"size": 3}})");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(coarse_along(steps, "latitude"), 2);
  EXPECT_EQ(coarse_along(steps, "time"), 6);
  EXPECT_EQ(coarse_along(steps, "x"), 1);
  EXPECT_EQ(coarsen_json(steps).dump(),
            R"({"latitude":{"size":2,"how":"mean"},"time":{"size":6,"how":"sum"},)"
            R"("y":{"size":3,"how":"mean"}})");
}

TEST(CoarsenSpec, RefusesWhatIsNoBlock) {
  EXPECT_EQ(refused("{}"), "coarsen: name at least one dimension");
  EXPECT_THAT(refused(R"({"y": 0})"), testing::StartsWith("coarsen.y: "));
  EXPECT_THAT(refused(R"({"y": "2"})"), testing::StartsWith("coarsen.y: "));
  EXPECT_THAT(refused(R"({"y": {"how": "sum"}})"), testing::HasSubstr("size"));
  EXPECT_THAT(refused(R"({"y": {"size": 2, "how": "men"}})"),
              testing::HasSubstr("there is no method 'men', did you mean 'mean'?"));
  EXPECT_THAT(refused(R"({"y": {"size": 2, "method": "sum"}})"), testing::HasSubstr("method"));
}

}  // namespace coarsen_spec_test
}  // namespace batchfs

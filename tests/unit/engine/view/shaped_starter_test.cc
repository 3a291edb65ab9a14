#include "engine/view/shaped_starter.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace shaped_starter_test {

using testing::HasSubstr;

MemoryData weather() {
  MemoryData data;
  data.declare("t", "<f4", {"time", "lat", "lon"}, {100, 181, 360}, {1, 91, 90})
      .declare("u", "<f4", {"time", "level", "lat", "lon"}, {100, 3, 181, 360}, {1, 3, 181, 360})
      .declare("mask", "|u1", {"lat", "lon"}, {181, 360}, {181, 360});
  return data;
}

TEST(ShapedStarter, PatchesOfAForecast) {
  const auto dataset = weather().dataset();
  const Json starter =
      shaped_starter_view(*dataset, "train", {.patch = 64, .time = 4, .predict = 1}).view;
  EXPECT_EQ(starter["window"], parse_json(R"({"time": 1, "lat": 64, "lon": 64})", ""));
  EXPECT_EQ(starter["tensors"]["x"],
            parse_json(R"({"variables": ["t", "u"], "offsets": {"time": [0, 1, 2, 3]},
                           "stack": "channel"})",
                       ""));
  EXPECT_EQ(starter["tensors"]["y"]["offsets"], parse_json(R"({"time": [4]})", ""));
  EXPECT_FALSE(starter.contains("variables"));
  const auto view = parse_view(dataset, starter.dump());
  EXPECT_EQ(view->samples(), (100 - 4) * 2 * 5);
}

TEST(ShapedStarter, TilesOfImagesAreChunks) {
  MemoryData data;
  data.declare("image", "|u1", {"item", "y", "x"}, {7, 1000, 300}, {1, 256, 512});
  const auto dataset = data.dataset();
  const Json starter = shaped_starter_view(*dataset, "v", {.chunk_patch = true}).view;
  EXPECT_EQ(starter["window"], parse_json(R"({"item": 1, "y": 256, "x": 300})", ""));
  EXPECT_EQ(starter["variables"], Json::array({"image"}));
  EXPECT_EQ(parse_view(dataset, starter.dump())->samples(), 7 * 3);
}

TEST(ShapedStarter, StepsOfTimeBeginAtEachStep) {
  const auto dataset = weather().dataset();
  const Json starter = shaped_starter_view(*dataset, "v", {.time = 6}, UINT64_MAX).view;
  EXPECT_EQ(starter["window"], parse_json(R"({"time": {"size": 6, "stride": 1}})", ""));
  EXPECT_EQ(parse_view(dataset, starter.dump())->samples(), 95);
}

TEST(ShapedStarter, ABatchFitsOrAnErrorSaysWhatToDo) {
  const auto dataset = weather().dataset();
  const StarterView few = shaped_starter_view(*dataset, "v", {.patch = 100, .time = 2}, 1 << 20);
  EXPECT_EQ(few.view["batch"]["size"], 2);
  EXPECT_THAT(few.reduced.at(0), HasSubstr("2 samples in a batch instead of 32"));
  const std::pair<StarterShape, const char*> cases[] = {
      {{.patch = 182}, "--patch 182: 'lat' has 181 positions"},
      {{.time = 100, .predict = 1}, "101 steps in a sample: 'time' has 100"},
      {{.patch = 180}, "take a smaller --patch"}};
  for (const auto& [shape, says] : cases)
    EXPECT_THAT(error_of([&, &s = shape] { shaped_starter_view(*dataset, "v", s, 100'000); }).why(),
                HasSubstr(says));
  MemoryData image;
  image.declare("image", "|u1", {"y", "x"}, {64, 64}, {64, 64});
  EXPECT_THAT(error_of([&] {
                shaped_starter_view(*image.dataset(), "v", {.patch = 8, .predict = 1});
              }).why(),
              HasSubstr("leave --predict out"));
}

}  // namespace shaped_starter_test
}  // namespace batchfs

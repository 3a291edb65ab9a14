#include "engine/view/view.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace {

using testing::HasSubstr;

MemoryData weather() {
  MemoryData data;
  data.declare("orography", "<f4", {"lat", "lon"}, {721, 1440}, {721, 1440})
      .declare("t", "<f4", {"lat", "time", "lon"}, {721, 100, 1440}, {721, 1, 1440})
      .declare("label", "|S20", {"time"}, {100}, {100})
      .declare("q", "<f4", {"time", "lat"}, {100, 721}, {1, 721});
  return data;
}

TEST(View, StarterIsAViewOfItsDataset) {
  const auto dataset = weather().dataset();
  const Json starter = starter_view(*dataset, "mine");
  EXPECT_EQ(starter["name"], "mine");
  EXPECT_EQ(starter["variables"], Json::array({"q", "t"}));  // not the names, which no tensor holds
  EXPECT_EQ(starter["window"], parse_json(R"({"time": 1})", ""));
  EXPECT_EQ(starter["batch"]["size"], 32);
  const auto view = parse_view(dataset, starter.dump());
  EXPECT_EQ(view->name(), "mine");
  EXPECT_EQ(view->samples(), 100);
}

TEST(View, StarterSamplesAlongTheFirstDimensionWithoutTime) {
  MemoryData data;
  data.declare("image", "|u1", {"item", "y", "x"}, {7, 4, 4}, {1, 4, 4});
  const Json starter = starter_view(*data.dataset(), "v");
  EXPECT_EQ(starter["window"], parse_json(R"({"item": 1})", ""));
  EXPECT_EQ(starter["batch"]["size"], 7);
}

TEST(View, StarterOfNothingSaysWhatToDo) {
  MemoryData data;
  data.index<double>("x", "<f8", {1, 2}).declare("scalar", "<f4", {}, {}, {}).declare("s", "|S4", {"x"}, {2}, {2});
  const Error error = error_of([&] { starter_view(*data.dataset(), "v"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.why(), HasSubstr("name a group"));
}

TEST(View, NoVariableWithTheDimensionsSaysWhichThereAre) {
  const Error error = error_of([&] {
    MemoryData data;
    data.declare("a", "<f4", {"x"}, {2}, {2}).declare("b", "<f4", {"y"}, {2}, {2});
    parse_view(data.dataset(), R"({"window": {"x": 1, "y": 1}})");
  });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_EQ(error.why(), "no variable has the dimensions x, y; there are a, b");
  EXPECT_EQ(error.where(), "file.json");
}

TEST(View, IsThereForEveryFormOfTheFile) {
  const auto dataset = weather().dataset();
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "window": {"time": 10}})")->samples(), 10);
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "xbatcher": {"input_dims": {"time": 10}}})")->samples(), 10);
  EXPECT_EQ(parse_view(dataset, R"({"variables": ["q"], "window": {"time": 10}})")->name(), "given");
}

TEST(View, DoesNotReadItsVariables) {
  // The chunks of `t` would be 74 PB.
  MemoryData data;
  data.declare("t", "<f4", {"time", "cell"}, {INT64_C(1) << 40, 1 << 14}, {1, 1 << 14});
  const auto view = parse_view(data.dataset(), R"({"window": {"time": 1}, "batch": 2, "order": {"shuffle": "global"}})");
  EXPECT_EQ(view->samples(), INT64_C(1) << 40);
  assembled(*view, 0, view->batches() / 2);
}

}  // namespace
}  // namespace batchfs

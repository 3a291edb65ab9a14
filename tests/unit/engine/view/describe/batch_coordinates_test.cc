#include "engine/view/describe/batch_coordinates.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/base/dims.h"
#include "engine/view/batch_coordinate.h"
#include "engine/view/batch_plan.h"
#include "engine/view/view.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace batch_coordinates_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Integers = std::vector<std::int32_t>;

struct BatchCoordinates : testing::Test {
  const std::shared_ptr<const Dataset> dataset =
      MemoryData()
          .declare("a", "<f8", {"time", "level", "x"}, {6, 2, 4}, {2, 2, 4})
          .declare("m", "<f8", {"level", "x"}, {2, 4}, {2, 4})
          .declare("unused", "<f4", {"z"}, {3}, {3})
          .index<std::int32_t>("time", "<i4", {0, 1, 2, 3, 4, 5}, {{"long_name", "step"}})
          .index<std::int32_t>("level", "<i4", {500, 850})
          .index<std::int32_t>("z", "<i4", {1, 2, 3})
          .dataset();
  std::shared_ptr<const View> view(const std::string& json) const {
    return parse_view(dataset, json);
  }
};

template <class Coordinates>
std::vector<std::string> names(const Coordinates& coordinates) {
  std::vector<std::string> result;
  for (const auto& each : coordinates) result.push_back(each.name);
  return result;
}

TEST_F(BatchCoordinates, OfAViewAreThoseOfWindowsAndOfTensors) {
  const auto v = view(R"({"variables": ["m"], "window": {"time": 2},
                          "select": {"time": {"from": 2}, "level": 850}})");
  EXPECT_THAT(names(v->coordinates()), UnorderedElementsAre("time", "level"));
  EXPECT_EQ(values_of<std::int32_t>(*v->coordinate("time")->values), (Integers{2, 3, 4, 5}));
  EXPECT_EQ(values_of<std::int32_t>(*v->coordinate("level")->values), Integers{850});
  EXPECT_EQ(v->coordinate("time")->attributes, Json({{"long_name", "step"}}));
  EXPECT_EQ(v->coordinate("x"), nullptr);
  const auto of = [&](const ViewAxes& axes) {
    return names(collect_coordinates(*dataset, axes, v->tensor_set()));
  };
  EXPECT_THAT(of(ViewAxes(*dataset, {})), ElementsAre("level"));  // no windows slide along time
}

TEST_F(BatchCoordinates, AlongSamplesAreTheLabelsOfTheirStarts) {
  const auto v = view(R"({"variables": ["a"], "window": {"time": {"size": 2, "stride": 1}, "x": 1},
      "select": {"x": ["#3", "#0", "#1"]}, "batch": 4, "order": {"shuffle": "global"}})");
  const auto coordinates = batch_coordinates(*v, 1, 2);
  EXPECT_THAT(names(coordinates), ElementsAre("time_start", "x_start", "level"));
  EXPECT_THAT(coordinates[0].dims, ElementsAre("sample"));
  EXPECT_EQ(coordinates[0].attributes, Json({{"long_name", "step"}}));
  Integers times;
  std::vector<std::int64_t> positions;  // in the array: x has no labels
  for (const Dims& starts : v->window_starts(1, 2)) {
    times.push_back(static_cast<std::int32_t>(starts[0]));
    positions.push_back(std::vector<std::int64_t>{3, 0, 1}[static_cast<std::size_t>(starts[1])]);
  }
  EXPECT_EQ(values_of<std::int32_t>(coordinates[0].values()), times);
  EXPECT_EQ(values_of<std::int64_t>(coordinates[1].values()), positions);
  std::int32_t some[2];
  coordinates[0].read({1, 2}, reinterpret_cast<std::byte*>(some));
  EXPECT_THAT(some, ElementsAre(times[1], times[2]));
  EXPECT_THAT(coordinates[2].dims, ElementsAre("level"));
  EXPECT_EQ(values_of<std::int32_t>(coordinates[2].values()), (Integers{500, 850}));
}

TEST_F(BatchCoordinates, NamesThatTensorsHaveAreTheirs) {
  const auto of = [&](const std::string& tensors) {
    return names(
        batch_coordinates(*view(R"({"window": {"time": 1}, "tensors": )" + tensors + "}"), 0, 0));
  };
  EXPECT_THAT(of(R"({"y": {"variables": ["a"]}})"), ElementsAre("time_start", "level"));
  EXPECT_THAT(of(R"({"time_start": {"variables": ["a"]}})"), ElementsAre("level"));
  EXPECT_THAT(of(R"({"level": {"variables": ["a"]}})"), ElementsAre("time_start"));
  // The dimension of windows of one position is free where it is a channel.
  const std::string stack = R"({"variables": ["a"], "stack": "c", "dims": ["c", "x"]})";
  EXPECT_THAT(of(R"({"y": )" + stack + "}"), ElementsAre("time"));
  EXPECT_THAT(of(R"({"time": )" + stack + "}"), IsEmpty());
}

TEST_F(BatchCoordinates, OfATensorAreTheMeansOfItsBlocks) {
  const auto v = view(R"({"window": {"time": 1}, "tensors": {
      "fine": {"variables": ["a"]}, "coarse": {"variables": ["a"], "coarsen": {"level": 2}}}})");
  const auto level = [&](std::size_t tensor) {
    return tensor_coordinate(*v, v->tensors()[tensor], "level").value().values();
  };
  EXPECT_EQ(values_of<std::int32_t>(level(0)), (Integers{500, 850}));
  EXPECT_EQ(values_of<double>(level(1)), std::vector<double>{675});
  EXPECT_EQ(tensor_coordinate(*v, v->tensors()[0], "time"), std::nullopt);  // of windows
  EXPECT_EQ(tensor_coordinate(*v, v->tensors()[0], "x"), std::nullopt);     // without labels
  EXPECT_TRUE(has_tensor_dim(v->tensors(), "x"));
  EXPECT_FALSE(has_tensor_dim(v->tensors(), "sample"));
}

TEST_F(BatchCoordinates, OfAPatchAreItsPartOfTheLabels) {
  const auto of = [&](const std::string& form) {
    return batch_coordinates(*view(R"({"variables": ["a"], "xbatcher": )" + form + "}"), 0, 3);
  };
  const auto patch = of(R"({"input_dims": {"time": 2, "level": 1}, "input_overlap": {"time": 1}})");
  EXPECT_THAT(names(patch), UnorderedElementsAre("time", "level"));
  for (const BatchCoordinate& each : patch) {
    EXPECT_THAT(each.dims, ElementsAre(each.name));
    EXPECT_EQ(values_of<std::int32_t>(each.values()),
              each.name == "time" ? (Integers{1, 2}) : (Integers{850}));
  }
  // Concatenated patches have none along what they slice, stacked dimensions have none at all.
  EXPECT_THAT(names(of(R"({"input_dims": {"time": 2, "x": 4}, "batch_dims": {"time": 2},
                           "concat_input_dims": true})")),
              IsEmpty());
  EXPECT_THAT(of(R"({"input_dims": {"x": 1}})"), IsEmpty());
}

}  // namespace batch_coordinates_test
}  // namespace batchfs

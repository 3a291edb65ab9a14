#include "engine/dataset/axis_coordinates.h"

#include <gmock/gmock.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace axis_coordinates_test {

using testing::ElementsAre;
using testing::HasSubstr;

ArrayAxis axis(const std::string& name, double scale, double translation) {
  ArrayAxis result;
  result.name = name;
  result.unit = "micrometer";
  result.has_values = true;
  result.scale = scale;
  result.translation = translation;
  return result;
}

ArrayAxis channels(const std::vector<std::string>& labels) {
  ArrayAxis result;
  result.name = "c";
  result.labels = std::make_shared<const std::vector<std::string>>(labels);
  return result;
}

struct AxisCoordinates : testing::Test {
  AxisCoordinates() {
    data.declare("0", "|u1", {}, {2, 3}, {2, 3});
    data.hierarchy.arrays.at("0").axes = {channels({"DAPI", "\u03b1"}), axis("x", 0.5, 10)};
  }
  MemoryData data;
};

TEST_F(AxisCoordinates, FollowFromScaleTranslationAndLabels) {
  const auto dataset = data.dataset();
  EXPECT_EQ(dataset->variable("0").dims, (Names{"c", "x"}));
  const Variable* x = dataset->index_of("x");
  ASSERT_NE(x, nullptr);
  EXPECT_TRUE(x->is_coordinate);
  EXPECT_EQ(x->attributes.at("units"), "micrometer");
  EXPECT_THAT(values_of<double>(dataset->index_values("x")), ElementsAre(10, 10.5, 11));
  const NdArray& labels = dataset->index_values("c");
  EXPECT_EQ(labels.type.name(), "<U4");
  EXPECT_EQ(values_of<char32_t>(labels)[4], U'\u03b1');
}

TEST_F(AxisCoordinates, MayBeWholeNumbers) {
  ArrayAxis whole = axis("x", 1, 7);
  whole.whole = true;
  data.hierarchy.arrays.at("0").axes[1] = whole;
  EXPECT_THAT(values_of<std::int64_t>(data.dataset()->index_values("x")), ElementsAre(7, 8, 9));
}

TEST_F(AxisCoordinates, AreNotMadeWhereAnArrayHasTheName) {
  data.index<double>("x", "<f8", {5, 6, 7});
  EXPECT_THAT(values_of<double>(data.dataset()->index_values("x")), ElementsAre(5, 6, 7));
}

TEST_F(AxisCoordinates, AreNotMadeOfAxesOfOtherNames) {
  data.declare("1", "|u1", {"y", "c"}, {2, 3}, {2, 3});
  data.hierarchy.arrays.at("1").axes = {axis("c", 1, 0), axis("y", 1, 0)};
  data.hierarchy.arrays.erase("0");
  EXPECT_EQ(data.dataset()->variables().size(), 1u);
}

TEST_F(AxisCoordinates, OfOneDimensionMustBeTheSame) {
  data.declare("1", "|u1", {}, {3}, {3});
  data.hierarchy.arrays.at("1").axes = {axis("x", 0.5, 10)};
  EXPECT_EQ(data.dataset()->variables().size(), 4u);
  data.hierarchy.arrays.at("1").axes = {axis("x", 0.5, 11)};
  EXPECT_THAT(error_of([&] { data.dataset(); }).why(),
              HasSubstr("0.5 * i + 10 micrometer in '0' and 0.5 * i + 11 micrometer in '1'"));
}

TEST_F(AxisCoordinates, OfMoreThanMemoryHoldsAreRefused) {
  data.declare("0", "|u1", {}, {INT64_C(1) << 40}, {1 << 20});
  data.hierarchy.arrays.at("0").axes = {axis("x", 1, 0)};
  const auto dataset = data.dataset();
  const Error error = error_of([&] { dataset->index_values("x"); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_THAT(error.why(), HasSubstr("use positions"));
}

TEST_F(AxisCoordinates, DimensionsOfLengthOneOfOtherGroupsAreTheirOwn) {
  data.hierarchy.groups["labels/cells"] = Group{"labels/cells"};
  data.declare("labels/cells/0", "<i4", {}, {1, 3}, {1, 3});
  data.hierarchy.arrays.at("labels/cells/0").axes = data.hierarchy.arrays.at("0").axes;
  const Dataset dataset(data.store, data.hierarchy, "", std::nullopt,
                        {{"labels/cells:0", "labels/cells/0"}});
  EXPECT_EQ(dataset.variable("labels/cells:0").dims, (Names{"labels/cells:c", "x"}));
  EXPECT_EQ(dataset.dim_size("c"), 2);
}

}  // namespace axis_coordinates_test
}  // namespace batchfs

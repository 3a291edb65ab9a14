#include "engine/write/prediction/normalization_scale.h"

#include <gmock/gmock.h>

#include "engine/write/prediction/describe_predictions.h"
#include "tests/unit/engine/view/assembled.h"

namespace batchfs {
namespace normalization_scale_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNumbers[] = R"({
  "a": {"mean": [10, 20, 30], "std": [1, 2, 3], "dims": ["level"],
        "coordinates": {"level": [1000, 850, 500]}},
  "b": {"mean": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
        "std": [[1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]], "dims": ["y", "x"]},
  "c": {"mean": 5, "std": 2}})";

struct NormalizationScaleTest : testing::Test {
  NormalizationScaleTest() {
    data.declare("a", "<f4", {"time", "level", "y", "x"}, {5, 3, 3, 4}, {1, 3, 3, 4})
        .declare("b", "<f4", {"time", "y", "x"}, {5, 3, 4}, {1, 3, 4})
        .declare("c", "<f4", {"time", "y", "x"}, {5, 3, 4}, {1, 3, 4})
        .index<std::int32_t>("level", "<i4", {1000, 850, 500});
  }
  /// The numbers that a view's only tensor has for the sample in a row.
  struct Numbers {
    Dims shape;
    std::vector<double> multiply, add;
  };
  Numbers numbers(const std::string& keys, std::size_t row, std::size_t array = 0) {
    const PredictionDescription description = described(keys);
    const PredictedScale& scale = *description.arrays.at(array).scale;
    Numbers result{scale.shape(), {}, {}};
    result.multiply.resize(static_cast<std::size_t>(element_count(result.shape)));
    result.add.resize(result.multiply.size());
    scale.numbers(row, result.multiply.data(), result.add.data());
    return result;
  }
  PredictionDescription described(const std::string& keys,
                                  const std::string& method = R"("method": "zscore")") {
    view = parse_view(data.dataset(), "{" + keys + R"(, "batch": 2, "normalize": {)" + method +
                                          R"(, "statistics": )" + kNumbers + "}}");
    return describe_predictions(*view, {.denormalize = true});
  }
  MemoryData data;
  std::shared_ptr<const View> view;
};

TEST_F(NormalizationScaleTest, NumbersOfALevelGoWithItsLabel) {
  const Numbers levels =
      numbers(R"("variables": ["a"], "window": {"time": 1}, "select": {"level": [500, 1000]})", 2);
  EXPECT_EQ(levels.shape, (Dims{1, 2, 1, 1}));
  EXPECT_THAT(levels.multiply, ElementsAre(3, 1));
  EXPECT_THAT(levels.add, ElementsAre(30, 10));
  const Numbers one =
      numbers(R"("variables": ["a"], "window": {"time": 1}, "select": {"level": 850})", 2);
  EXPECT_EQ(one.shape, (Dims{1, 1, 1}));
  EXPECT_THAT(one.multiply, ElementsAre(2));
  EXPECT_THAT(one.add, ElementsAre(20));
}

TEST_F(NormalizationScaleTest, NumbersOfPositionsMoveWithTheWindow) {
  const std::string windows =
      R"("variables": ["b"], "window": {"time": 1, "y": {"size": 2, "stride": 1},
                                        "x": {"size": 3, "stride": 2, "wrap": true}})";
  // Samples in a row of 2 x 2 for each time: the last begins at y=1, x=2 and wraps to x=0.
  const Numbers last = numbers(windows, 3);
  EXPECT_EQ(last.shape, (Dims{1, 2, 3}));
  EXPECT_THAT(last.add, ElementsAre(6, 7, 4, 10, 11, 8));
  EXPECT_THAT(last.multiply, ElementsAre(2, 2, 2, 3, 3, 3));
  EXPECT_THAT(numbers(windows, 4).add, ElementsAre(0, 1, 2, 4, 5, 6));
}

TEST_F(NormalizationScaleTest, ChannelsOfAStackHaveTheirOwn) {
  const std::string stack =
      R"("window": {"time": 1}, "tensors": {"s": {"variables": ["c", "a"], "stack": "channel"}})";
  const Numbers c = numbers(stack, 0, 0);
  EXPECT_EQ(c.shape, (Dims{1, 1, 1}));
  EXPECT_THAT(c.multiply, ElementsAre(2));
  EXPECT_THAT(c.add, ElementsAre(5));
  EXPECT_THAT(numbers(stack, 0, 1).add, ElementsAre(10, 20, 30));
}

TEST_F(NormalizationScaleTest, IsThereForNormalizedVariablesOnly) {
  const PredictionDescription description =
      described(R"("variables": ["a", "c"], "window": {"time": 1})",
                R"("method": "zscore", "except": ["a"])");
  EXPECT_EQ(description.arrays[0].scale, nullptr);
  EXPECT_NE(description.arrays[1].scale, nullptr);
  EXPECT_FALSE(is_normalized(*view, 0, "a"));
  EXPECT_TRUE(is_normalized(*view, 1, "c"));
  EXPECT_FALSE(is_normalized(*view, 1, "nothing"));
}

TEST_F(NormalizationScaleTest, LogarithmsCannotBeUndone) {
  EXPECT_THAT(error_of([&] {
                described(R"("variables": ["c"], "window": {"time": 1})",
                          R"("method": "log1p", "scale": 1, "then": "zscore")");
              }).why(),
              HasSubstr("log1p cuts off what is below 0"));
}

}  // namespace normalization_scale_test
}  // namespace batchfs

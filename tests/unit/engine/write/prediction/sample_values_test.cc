#include "engine/write/prediction/sample_values.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace sample_values_test {

using testing::HasSubstr;

/// A tensor (sample, lat, channel) whose channels 1..4 are three levels of the array (level, lat).
PredictedArray profile() {
  return {.name = "p",
          .tensor = "t",
          .axes = {whole_axis("level", 3), window_axis("lat", 5, 0, 4)},
          .order = {0, 1},
          .stack = StackSlice{2, 1, 4, {3}},
          .tensor_shape = {4, 6},
          .tensor_dims = {"sample", "lat", "channel"},
          .type = float64()};
}

class RampScale final : public PredictedScale {
 public:
  RampScale() : PredictedScale({3, 1}) {}
  void numbers(std::size_t row, double* multiply, double* add) const override {
    for (int level = 0; level < 3; ++level) {
      multiply[level] = level + 1;
      add[level] = 100 * static_cast<double>(row);
    }
  }
};

std::vector<double> doubles(const Buffer& buffer) {
  std::vector<double> values(buffer.size() / 8);
  std::memcpy(values.data(), buffer.data(), buffer.size());
  return values;
}

/// Two samples, the value 100 * sample + 10 * lat + channel.
std::vector<float> two_samples() {
  std::vector<float> values;
  for (int s = 0; s < 2; ++s)
    for (int y = 0; y < 4; ++y)
      for (int c = 0; c < 6; ++c) values.push_back(static_cast<float>(100 * s + 10 * y + c));
  return values;
}

TEST(SampleValues, ChannelsAreTakenApart) {
  const PredictionSamples samples = grid_samples({{0, 1}});
  PredictionOptions options;
  options.overlap = Overlap::last;
  options.chunks = {{"level", 2}, {"lat", 2}};
  const Placement placement(profile(), samples, options);
  const std::vector<float> values = two_samples();
  PredictedValues given = as_values(values, placement.array(), 2);
  const SampleValues all(placement, given, 2);
  // The object (levels 0 and 1, lat 2 and 3) has lat 1 and 2 of a sample that begins at 1.
  const std::int64_t start = 1, number = placement.object_number({0, 1});
  EXPECT_EQ(doubles(all.cut(placement.boxes(number, &start), 1, {})),
            (std::vector<double>{111, 121, 112, 122}));

  // The same values from the last channel to the first, the last sample first.
  std::vector<float> reversed(values.rbegin(), values.rend());
  given.data = reinterpret_cast<const std::byte*>(&reversed.back());
  for (std::int64_t& stride : given.strides) stride = -stride;
  const SampleValues mirrored(placement, given, 2);
  EXPECT_EQ(doubles(mirrored.cut(placement.boxes(number, &start), 1, {})),
            (std::vector<double>{111, 121, 112, 122}));
}

TEST(SampleValues, ANormalizationIsUndoneByPosition) {
  const PredictionSamples samples = grid_samples({{0, 1}});
  PredictionOptions options;
  options.overlap = Overlap::last;
  options.chunks = {{"level", 2}};
  PredictedArray array = profile();
  array.scale = std::make_shared<const RampScale>();
  const Placement placement(array, samples, options);
  const std::vector<float> values = two_samples();
  const PredictedValues given = as_values(values, array, 2);
  const SampleValues all(placement, given, 2);
  const std::int64_t start = 0;
  EXPECT_EQ(doubles(all.cut(placement.boxes(1, &start), 1, all.numbers(7))),
            (std::vector<double>{3 * 103 + 700, 3 * 113 + 700, 3 * 123 + 700, 3 * 133 + 700}));
  EXPECT_TRUE(
      SampleValues(Placement(profile(), samples, options), given, 2).numbers(0).multiply.empty());

  // Whole numbers become floats.
  const std::vector<std::int32_t> whole(48, 5);
  const PredictedValues numbers{reinterpret_cast<const std::byte*>(whole.data()),
                                make_type(Kind::signed_int, 4), given.shape, given.strides};
  array.type = float32();
  const Placement narrow(array, samples, options);
  const Buffer cut =
      SampleValues(narrow, numbers, 2).cut(narrow.boxes(0, &start), 0, all.numbers(0));
  float second = 0;
  std::memcpy(&second, cut.data() + 16, 4);
  EXPECT_EQ(second, 10.f);
}

TEST(SampleValues, OtherShapesAndTypesAreRefused) {
  const PredictionSamples samples = grid_samples({{0}});
  const Placement placement(profile(), samples, {});
  const std::vector<float> values = two_samples();
  const PredictedValues right = as_values(values, placement.array(), 2);
  const auto said = [](const Placement& of, const PredictedValues& given,
                       std::size_t count) -> std::string {
    try {
      const SampleValues all(of, given, count);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said(placement, right, 2), "");
  EXPECT_THAT(
      said(placement, right, 3),
      HasSubstr("has the shape (2, 4, 6), and the batch's is (3, 4, 6) (sample, lat, channel)"));
  PredictedValues other = right;
  other.shape[1] = 3;
  EXPECT_THAT(said(placement, other, 2), HasSubstr("has the shape (2, 3, 6)"));
  other.shape = {2};
  other.strides = {4};
  EXPECT_THAT(said(placement, other, 2), HasSubstr("has the shape (2,)"));
  PredictedArray classes = profile();
  classes.type = make_type(Kind::signed_int, 8);
  const Placement whole(classes, samples, {});
  EXPECT_THAT(said(whole, right, 2),
              HasSubstr("is of the type float32, and 'p' of int64: convert it, or pass dtype="));
}

TEST(SampleValues, OnlyWindowsAtTheEdgeMayBeShorter) {
  PredictedArray array = profile();
  array.axes[1].partial = true;
  PredictionOptions options;
  options.overlap = Overlap::last;
  const Placement placement(array, grid_samples({{0, 3}}), options);
  const std::vector<float> values = two_samples();
  PredictedValues given = as_values(values, array, 1);
  given.shape[1] = 2;
  const SampleValues all(placement, given, 1);
  std::int64_t start = 3;
  EXPECT_EQ(doubles(all.cut(placement.boxes(0, &start), 0, {})),
            (std::vector<double>{1, 11, 2, 12, 3, 13}));
  start = 0;
  EXPECT_THROW(all.cut(placement.boxes(0, &start), 0, {}), Error);
}

}  // namespace sample_values_test
}  // namespace batchfs

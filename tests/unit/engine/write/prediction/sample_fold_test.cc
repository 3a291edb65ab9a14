#include "engine/write/prediction/sample_fold.h"

#include <cstring>

#include <gtest/gtest.h>

#include "engine/write/prediction/value_cast.h"
#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace sample_fold_test {

template <class T>
Buffer buffer_of(const std::vector<T>& values) {
  Buffer buffer(values.size() * sizeof(T));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return buffer;
}

template <class T>
std::vector<T> values_of(const Buffer& buffer) {
  std::vector<T> values(buffer.size() / sizeof(T));
  std::memcpy(values.data(), buffer.data(), buffer.size());
  return values;
}

/// Windows of three along an axis of five, beginning at 0, 1 and 2.
Placement line(const DataType& type, Overlap overlap, bool is_grid = true) {
  PredictionSamples samples = grid_samples({{0, 1, 2}});
  samples.is_grid = is_grid;
  PredictionOptions options;
  options.overlap = overlap;
  return Placement({.name = "p",
                    .tensor = "t",
                    .axes = {window_axis("x", 5, 0, 3)},
                    .order = {0},
                    .tensor_shape = {3},
                    .tensor_dims = {"sample", "x"},
                    .type = type},
                   samples, options);
}

constexpr std::int64_t kStarts[] = {0, 1, 2};
const std::int64_t* starts_of(std::int64_t sample) { return kStarts + sample; }

template <class T>
std::vector<T> folded(const Placement& placement, Overlap overlap) {
  ObjectSamples samples;
  samples[2] = buffer_of<T>({7, 8, 9});
  samples[0] = buffer_of<T>({1, 2, 3});
  return values_of<T>(fold_samples(placement, 0, samples, starts_of, overlap));
}

TEST(SampleFold, TheHighestSampleIsTheLast) {
  EXPECT_EQ(
      folded<std::int32_t>(line(make_type(Kind::signed_int, 4), Overlap::last), Overlap::last),
      (std::vector<std::int32_t>{1, 2, 7, 8, 9}));
}

TEST(SampleFold, ElementsOfNoSampleAreFilled) {
  const Placement placement = line(make_type(Kind::signed_int, 2), Overlap::last);
  ObjectSamples samples;
  samples[1] = buffer_of<std::int16_t>({4, 5, 6});
  EXPECT_EQ(values_of<std::int16_t>(fold_samples(placement, 0, samples, starts_of, Overlap::last)),
            (std::vector<std::int16_t>{0, 4, 5, 6, 0}));
}

TEST(SampleFold, MeansAreOfFloatsOfAllSizes) {
  EXPECT_EQ(folded<float>(line(float32(), Overlap::mean), Overlap::mean),
            (std::vector<float>{1, 2, 5, 8, 9}));
  EXPECT_EQ(folded<double>(line(float64(), Overlap::mean), Overlap::mean),
            (std::vector<double>{1, 2, 5, 8, 9}));
  const auto half =
      folded<_Float16>(line(make_type(Kind::floating, 2), Overlap::mean), Overlap::mean);
  EXPECT_EQ(std::vector<float>(half.begin(), half.end()), (std::vector<float>{1, 2, 5, 8, 9}));
}

TEST(SampleFold, ANearerMiddleWinsAndOfEqualOnesTheFirst) {
  // Middles at 1 and 3: the element 2 is as near to both.
  EXPECT_EQ(folded<float>(line(float32(), Overlap::trim, false), Overlap::trim),
            (std::vector<float>{1, 2, 3, 8, 9}));
}

TEST(SampleFold, ValuesOfAnotherSizeAreNotRead) {
  const Placement placement = line(float32(), Overlap::last);
  ObjectSamples samples;
  samples[1] = buffer_of<float>({4, 5});
  EXPECT_THROW(fold_samples(placement, 0, samples, starts_of, Overlap::last), Error);
}

}  // namespace sample_fold_test
}  // namespace batchfs

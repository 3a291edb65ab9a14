#include "engine/view/coarsen/coarse_labels.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>

namespace batchfs {
namespace coarse_labels_test {

using testing::ElementsAre;

template <class Number>
NdArray labels(const DataType& type, const std::vector<Number>& values) {
  NdArray array{
      type, {static_cast<std::int64_t>(values.size())}, Buffer(values.size() * sizeof(Number))};
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

template <class Number>
std::vector<Number> values(const NdArray& array) {
  std::vector<Number> result(static_cast<std::size_t>(array.shape[0]));
  std::memcpy(result.data(), array.data.data(), array.data.size());
  return result;
}

DataType times() {
  DataType type = make_type(Kind::datetime, 8);
  type.unit = "h";
  return type;
}

TEST(CoarseLabels, AreMeans) {
  const auto floats = coarse_labels(labels<float>(float32(), {90, 88, 86, 84}), 2);
  EXPECT_EQ(floats->type, float32());
  EXPECT_THAT(values<float>(*floats), ElementsAre(89, 85));
  const auto integers =
      coarse_labels(labels<std::int64_t>(make_type(Kind::signed_int, 8), {1, 2, 4, 8}), 4);
  EXPECT_EQ(integers->type, float64());
  EXPECT_THAT(values<double>(*integers), ElementsAre(3.75));
}

TEST(CoarseLabels, OfTimesAreWholeUnits) {
  const auto means = coarse_labels(labels<std::int64_t>(times(), {-5, -2, 0, 6}), 2);
  EXPECT_EQ(means->type, times());
  EXPECT_THAT(values<std::int64_t>(*means), ElementsAre(-4, 3));
  EXPECT_FALSE(coarse_labels(labels<std::int64_t>(times(), {INT64_MIN, 2}), 2));
}

TEST(CoarseLabels, OfTextAreNone) {
  EXPECT_FALSE(coarse_labels(labels<char>(make_type(Kind::bytes, 1), {'a', 'b'}), 2));
}

}  // namespace coarse_labels_test
}  // namespace batchfs

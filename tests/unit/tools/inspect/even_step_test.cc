#include "tools/inspect/even_step.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace even_step_test {

template <class T>
NdArray array_of(Kind kind, const std::vector<T>& values) {
  NdArray array;
  array.type.kind = kind;
  array.type.itemsize = sizeof(T);
  if (kind == Kind::datetime || kind == Kind::timedelta) array.type.unit = "ns";
  array.shape = {std::ssize(values)};
  array.data = Buffer(values.size() * sizeof(T));
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

std::optional<double> step_of(const std::vector<double>& values) {
  return even_step(array_of(Kind::floating, values));
}

std::optional<double> step_of_floats(const std::vector<float>& values) {
  return even_step(array_of(Kind::floating, values));
}

TEST(EvenStep, WholeNumbersAndTimesAreExact) {
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < 50; ++i)
    times.push_back(1'577'836'800'000'000'000 + i * 21'600'000'000'000);
  for (const Kind kind : {Kind::datetime, Kind::timedelta, Kind::signed_int}) {
    EXPECT_EQ(even_step(array_of(kind, times)), 21.6e12);
    for (const std::int64_t jitter : {1, 1'000'000, 1'000'000'000}) {
      std::vector<std::int64_t> moved = times;
      moved[20] += jitter;
      EXPECT_EQ(even_step(array_of(kind, moved)), std::nullopt) << jitter;
    }
  }
  constexpr std::uint64_t kTop = UINT64_C(1) << 63;
  EXPECT_EQ(even_step(array_of<std::uint64_t>(Kind::unsigned_int, {kTop, kTop + 3, kTop + 6})), 3);
  EXPECT_EQ(even_step(array_of<std::uint64_t>(Kind::unsigned_int, {kTop, kTop + 3, kTop + 7})),
            std::nullopt);
  EXPECT_EQ(even_step(array_of<std::int8_t>(Kind::signed_int, {127, 0, -127})), -127);
  EXPECT_EQ(even_step(array_of<std::int64_t>(Kind::signed_int, {INT64_MIN, INT64_MAX})),
            std::ldexp(1.0, 64));
}

TEST(EvenStep, MissingEqualAndSingleValuesHaveNone) {
  EXPECT_EQ(even_step(array_of<std::int64_t>(Kind::datetime, {INT64_MIN, 5})), std::nullopt);
  EXPECT_EQ(even_step(array_of<std::int64_t>(Kind::datetime, {5, INT64_MIN})), std::nullopt);
  EXPECT_EQ(even_step(array_of<std::int64_t>(Kind::signed_int, {5, 5, 5})), std::nullopt);
  EXPECT_EQ(even_step(array_of<std::int64_t>(Kind::signed_int, {5})), std::nullopt);
  EXPECT_EQ(step_of({1, NAN, 3}), std::nullopt);
  EXPECT_EQ(step_of({0, 0}), std::nullopt);
  EXPECT_EQ(step_of({-INFINITY, 0, INFINITY}), std::nullopt);
}

TEST(EvenStep, FloatingPointNumbersAreEvenUpToTheirRounding) {
  std::vector<float> floats;
  std::vector<double> doubles, widened, metres;
  for (int i = 0; i < 3600; ++i) {
    floats.push_back(static_cast<float>(0.1 * i));
    doubles.push_back(0.1 * i);
    widened.push_back(static_cast<double>(floats.back()));
    metres.push_back(5e6 + 10 * i);
  }
  EXPECT_NEAR(step_of_floats(floats).value_or(0), 0.1, 1e-6);
  EXPECT_NEAR(step_of(doubles).value_or(0), 0.1, 1e-12);
  EXPECT_NEAR(step_of(widened).value_or(0), 0.1, 1e-6);
  EXPECT_EQ(step_of(metres), 10);
  // Far above the rounding of the type, however small beside the step.
  floats[7] += 1e-3F;
  doubles[7] += 1e-9;
  widened[7] += 1e-3;
  metres[7] += 1;
  EXPECT_EQ(step_of_floats(floats), std::nullopt);
  EXPECT_EQ(step_of(doubles), std::nullopt);
  EXPECT_EQ(step_of(widened), std::nullopt);
  EXPECT_EQ(step_of(metres), std::nullopt);
  // All that rounding leaves of steps of 0.1 is noise.
  EXPECT_EQ(step_of_floats({1e6F, 1e6F + 0.0625F, 1e6F + 0.1875F}), std::nullopt);
}

TEST(EvenStep, StepsThatDriftAreNotEven) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i + 1e-8 * i * i);
  EXPECT_EQ(step_of(values), std::nullopt);
}

}  // namespace even_step_test
}  // namespace batchfs

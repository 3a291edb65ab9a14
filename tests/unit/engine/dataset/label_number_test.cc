#include "engine/dataset/label_number.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs {
namespace label_number_test {

LabelNumber read(const std::string& text) {
  LabelNumber number = -1;
  const auto [end, failed] = read_label_number(text.data(), text.data() + text.size(), number);
  EXPECT_EQ(failed, std::errc()) << text;
  EXPECT_EQ(end, text.data() + text.size()) << text;
  return number;
}

template <class T>
LabelNumber element(const std::string& dtype, T value) {
  return label_number(MemoryData().index<T>("x", dtype, {value}).dataset()->index_values("x"), 0);
}

TEST(LabelNumber, TextOfDigitsIsExact) {
  EXPECT_EQ(read("9007199254740993"), LabelNumber(INT64_C(9007199254740993)));
  EXPECT_EQ(read("18446744073709551615"), LabelNumber(UINT64_MAX));
  EXPECT_EQ(read("-9223372036854775808"), LabelNumber(INT64_MIN));
  EXPECT_EQ(read("9007199254740993.0"), 9007199254740992.0L);
  EXPECT_EQ(read("9.007199254740993e15"), 9007199254740992.0L);
  EXPECT_EQ(read("0.1"), LabelNumber(0.1));
}

TEST(LabelNumber, BeyondAllLabelsEqualsNone) {
  EXPECT_LT(read("-9223372036854775809"), LabelNumber(INT64_MIN));
  EXPECT_GT(read("18446744073709551616"), LabelNumber(UINT64_MAX));
  EXPECT_GT(read("100000000000000000000000000000"), LabelNumber(UINT64_MAX));
}

TEST(LabelNumber, IsReadFromTheFront) {
  const std::string text = "90071992547409931h";
  LabelNumber number = 0;
  const auto [end, failed] = read_label_number(text.data(), text.data() + text.size(), number);
  EXPECT_EQ(number, LabelNumber(INT64_C(90071992547409931)));
  EXPECT_EQ(*end, 'h');
  EXPECT_EQ(read_label_number(text.data() + 17, text.data() + 18, number).ec,
            std::errc::invalid_argument);
  EXPECT_EQ(read_label_number(text.data(), text.data(), number).ec, std::errc::invalid_argument);
}

TEST(LabelNumber, OfJsonIsExact) {
  EXPECT_EQ(label_number(Json(UINT64_MAX)), LabelNumber(UINT64_MAX));
  EXPECT_EQ(label_number(Json(INT64_MIN + 1)), LabelNumber(INT64_MIN + 1));
  EXPECT_EQ(label_number(Json(0.1)), LabelNumber(0.1));
}

TEST(LabelNumber, OfEachTypeIsExact) {
  EXPECT_EQ(element<std::uint64_t>("<u8", UINT64_MAX - 1), LabelNumber(UINT64_MAX - 1));
  EXPECT_EQ(element<std::int64_t>("<i8", INT64_MIN + 1), LabelNumber(INT64_MIN + 1));
  EXPECT_EQ(element<std::int8_t>("|i1", -3), -3);
  EXPECT_EQ(element<std::uint16_t>("<u2", 65535), 65535);
  EXPECT_EQ(element<std::uint32_t>("<u4", UINT32_MAX), LabelNumber(UINT32_MAX));
  EXPECT_EQ(element<float>("<f4", 0.1f), LabelNumber(0.1f));
  EXPECT_EQ(element<double>("<f8", 0.1), LabelNumber(0.1));
  EXPECT_TRUE(std::isnan(element<std::int64_t>("<m8[ns]", INT64_MIN)));
  EXPECT_EQ(element<std::int64_t>("<m8[ns]", INT64_MAX), LabelNumber(INT64_MAX));
}

TEST(LabelNumber, IsStoredAsTheCoordinateHoldsIt) {
  EXPECT_EQ(as_stored(0.1, float32()), LabelNumber(0.1f));
  EXPECT_EQ(as_stored(0.1, make_type(Kind::floating, 2)), LabelNumber(0.0999755859375));
  EXPECT_EQ(as_stored(INT64_C(9007199254740993), float64()), 9007199254740992.0L);
  EXPECT_EQ(as_stored(INT64_C(9007199254740993), make_type(Kind::unsigned_int, 8)),
            LabelNumber(INT64_C(9007199254740993)));
}

TEST(LabelNumber, DistancesOfWholeNumbersAreExact) {
  EXPECT_EQ(label_distance(UINT64_MAX, 0, true), LabelNumber(UINT64_MAX));
  EXPECT_EQ(label_distance(INT64_MIN, INT64_MAX, true), LabelNumber(UINT64_MAX));
  EXPECT_EQ(label_distance(0.3, 1, false), LabelNumber(1 - 0.3));
}

}  // namespace label_number_test
}  // namespace batchfs

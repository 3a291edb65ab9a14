// Expected documents are those of zarr-python 3 and xarray.
#include "engine/write/type_text.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace batchfs {
namespace type_text_test {

template <class T>
std::vector<std::byte> element(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

DataType typed(const std::string& name) { return parse_numpy_type(name); }

TEST(TypeText, TypesAreNamedAsInFormat3) {
  EXPECT_EQ(v3_data_type(typed("bool")), "bool");
  EXPECT_EQ(v3_data_type(typed("uint64")), "uint64");
  EXPECT_EQ(v3_data_type(typed("float16")), "float16");
  EXPECT_EQ(v3_data_type(typed("complex64")), "complex64");
  EXPECT_EQ(v3_data_type(typed("datetime64[ns]")), Json::parse(R"({"name": "numpy.datetime64",
                            "configuration": {"unit": "ns", "scale_factor": 1}})"));
  EXPECT_EQ(
      v3_data_type(make_type(Kind::bytes, 5)),
      Json::parse(R"({"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}})"));
  EXPECT_EQ(
      v3_data_type(make_type(Kind::unicode, 12)),
      Json::parse(R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}})"));
}

TEST(TypeText, EveryTypeIsReadBack) {
  for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                           "uint64", "float16", "float32", "float64", "complex64", "complex128"}) {
    const DataType type = typed(name);
    EXPECT_EQ(parse_v3_type(JsonRef(v3_data_type(type), "data_type")), type) << name;
  }
}

TEST(TypeText, FieldsThatAreArraysAreRefused) {
  DataType type = make_type(Kind::structured, 12);
  type.fields = {{"a", float32(), {3}, 0}};
  EXPECT_THROW(v3_data_type(type), Error);
}

TEST(TypeText, FillValues) {
  const auto v3 = [](const std::string& type, const std::vector<std::byte>& value) {
    return v3_fill_value(typed(type), value);
  };
  EXPECT_EQ(v3("bool", element<char>(1)), true);
  EXPECT_EQ(v3("int8", element<std::int8_t>(-128)), -128);
  EXPECT_EQ(v3("uint64", element<std::uint64_t>(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(v3("int64", element<std::int64_t>(INT64_MIN)), INT64_MIN);
  EXPECT_EQ(v3("float32", element(1.5f)), 1.5);
  EXPECT_EQ(v3("float16", element<std::uint16_t>(0x3e00)), 1.5);
  EXPECT_EQ(v3("float32", element(std::nanf(""))), "NaN");
  EXPECT_EQ(v3("float32", element<std::uint32_t>(0x7fc00001)), "0x7fc00001");
  EXPECT_EQ(v2_fill_value(float32(), element<std::uint32_t>(0x7fc00001)), "NaN");
  EXPECT_EQ(v3("float64", element(-std::numeric_limits<double>::infinity())), "-Infinity");
  EXPECT_EQ(v3("datetime64[ns]", element<std::int64_t>(INT64_MIN)), INT64_MIN);
  const std::array complex{1.5f, std::nanf("")};
  EXPECT_EQ(v3("complex64", element(complex)), Json::parse(R"([1.5, "NaN"])"));
  EXPECT_EQ(v2_fill_value(make_type(Kind::unicode, 12),
                          element<std::array<char32_t, 3>>({U'ä', U'b', 0})),
            "äb");
}

TEST(TypeText, TheAttributeIsXarrays) {
  EXPECT_EQ(fill_attribute(float64(), element(std::nan(""))), "AAAAAAAA+H8=");
  EXPECT_EQ(fill_attribute(float64(), element(-1.0)), "AAAAAAAA8L8=");
  EXPECT_EQ(fill_attribute(float64(), element(1e20)), "QIy1eB2vFUQ=");
  EXPECT_EQ(fill_attribute(float32(), element(0.1f)), "AAAAoJmZuT8=");
  EXPECT_EQ(fill_attribute(typed("int16"), element<std::int16_t>(-1)), -1);
}

TEST(TypeText, TheAttributeIsReadInBothSpellings) {
  EXPECT_EQ(parse_fill_attribute(float32(), "AAAAoJmZuT8="), element(0.1f));
  EXPECT_EQ(parse_fill_attribute(float64(), -1.0), element(-1.0));
  EXPECT_EQ(parse_fill_attribute(typed("int16"), -1), element<std::int16_t>(-1));
  EXPECT_EQ(parse_fill_attribute(float32(), Json::array({1, 2})), std::nullopt);
  EXPECT_EQ(parse_fill_attribute(typed("int16"), "rubbish"), std::nullopt);
}

}  // namespace type_text_test
}  // namespace batchfs

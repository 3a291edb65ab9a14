#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/zarr/data_type.h"

namespace batchfs {
namespace data_type_v3_test {

template <class Body>
std::string failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

DataType v3(const std::string& json) {
  const Json type = parse_json(json, "t");
  return parse_v3_type(JsonRef(type, "data_type"));
}

std::string v3_refusal(const std::string& json) {
  return failure([&] { v3(json); });
}

TEST(V3Type, CoreAndExtensions) {
  for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                           "uint64", "float16", "float32", "float64", "complex64", "complex128"}) {
    EXPECT_EQ(v3(std::string("\"") + name + "\"").name(), name);
    EXPECT_EQ(v3(std::string(R"({"name": ")") + name + "\"}").name(), name);
  }
  EXPECT_EQ(v3("\"r24\""), make_type(Kind::raw, 3));
  EXPECT_EQ(
      v3(R"({"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 25}})")
          .name(),
      "datetime64[25us]");
  EXPECT_EQ(
      v3(R"({"name": "numpy.timedelta64", "configuration": {"unit": "generic", "scale_factor": 1}})")
          .name(),
      "timedelta64");
  EXPECT_EQ(v3(R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}})").name(),
            "<U3");
  EXPECT_EQ(
      v3(R"({"name": "null_terminated_bytes", "configuration": {"length_bytes": 12}})").name(),
      "|S12");
  EXPECT_EQ(v3(R"({"name": "raw_bytes", "configuration": {"length_bytes": 12}})").name(), "|V12");
  EXPECT_EQ(v3("\"string\"").kind, Kind::variable_string);
  EXPECT_EQ(v3("\"variable_length_bytes\"").kind, Kind::variable_bytes);
}

TEST(V3Type, RefusesTheRestByName) {
  for (const char* name : {"bfloat16", "float8_e4m3", "int4", "r7", "r0", "r", "rabbit",
                           "r99999999999999", "", "float128", "<f4"})
    EXPECT_EQ(v3_refusal(std::string("\"") + name + "\""),
              std::string("data_type: the data type '") + name + "' is not supported");
  EXPECT_EQ(v3_refusal("7"), "data_type: expected an object");
  EXPECT_EQ(v3_refusal("{}"), "data_type: the key 'name' is missing");
  EXPECT_EQ(v3_refusal(R"({"name": 7})"), "data_type.name: expected a string");
  EXPECT_EQ(v3_refusal(R"({"name": "numpy.datetime64"})"),
            "data_type.configuration: the key 'unit' is missing");
  EXPECT_EQ(v3_refusal(R"({"name": "numpy.datetime64", "configuration": []})"),
            "data_type.configuration: expected an object");
  EXPECT_EQ(
      v3_refusal(
          R"({"name": "numpy.datetime64", "configuration": {"unit": "fortnight", "scale_factor": 1}})"),
      "data_type.configuration.unit: unknown time unit");
  EXPECT_EQ(
      v3_refusal(
          R"({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 0}})"),
      "data_type.configuration.scale_factor: 0 is too small, the least is 1");
  EXPECT_EQ(v3_refusal(R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 7}})"),
            "data_type.configuration.length_bytes: not a multiple of 4");
  EXPECT_EQ(v3_refusal(R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 0}})"),
            "data_type.configuration.length_bytes: elements of no bytes are not supported");
  EXPECT_EQ(
      v3_refusal(R"({"name": "null_terminated_bytes", "configuration": {"length_bytes": 1e10}})"),
      "data_type.configuration.length_bytes: 10000000000 is too large, the most is 1048576");
  EXPECT_EQ(v3_refusal(R"({"name": "raw_bytes", "configuration": {"length_bytes": -4}})"),
            "data_type.configuration.length_bytes: -4 is too small, the least is 0");
}

std::string with_fields(const std::string& name, const std::string& fields) {
  return R"({"name": ")" + name + R"(", "configuration": {"fields": [)" + fields + "]}}";
}

TEST(V3Type, Structures) {
  const std::string inner = with_fields("struct", R"({"name": "v", "data_type": "float64"},
      {"name": "s", "data_type": {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}})");
  const DataType type = v3(with_fields(
      "struct",
      R"({"name": "x", "data_type": "int16"}, {"name": "p", "data_type": )" + inner + "}"));
  EXPECT_EQ(type.npy_descr(), "[('x', '<i2'), ('p', [('v', '<f8'), ('s', '|S3')])]");
  EXPECT_EQ(type.itemsize, 13u);
  EXPECT_EQ(type.fields[1].offset, 2u);
  EXPECT_EQ(type.fields[1].type.fields[1].offset, 8u);
  // The form that zarr-python 3.1 writes.
  EXPECT_EQ(v3(with_fields("structured", R"(["x", "int16"], ["p", )" + inner + "]")), type);
}

TEST(V3Type, RefusesStructuresThatCannotBe) {
  EXPECT_EQ(v3_refusal("\"struct\""), "data_type.configuration: the key 'fields' is missing");
  EXPECT_EQ(v3_refusal(with_fields("struct", "")),
            "data_type.configuration.fields: a structured data type needs fields");
  EXPECT_EQ(v3_refusal(with_fields("struct", R"(["x", "int8"], ["x", "int8"])")),
            "data_type.configuration.fields[1][0]: the field 'x' is there twice");
  EXPECT_EQ(v3_refusal(with_fields("struct", R"(["x"])")),
            "data_type.configuration.fields[0]: expected [name, data_type]");
  EXPECT_EQ(v3_refusal(with_fields("struct", R"(["x", "string"])")),
            "data_type.configuration.fields[0][1]: fields of any length are not supported");
  EXPECT_THAT(v3_refusal(with_fields("struct", R"(["x", "r8388608"], ["y", "int8"])")),
              testing::HasSubstr("elements of more than 1 MB"));
  std::string nested = "\"int8\"";
  for (int i = 0; i < 20; ++i) nested = with_fields("struct", R"(["a", )" + nested + "]");
  EXPECT_THAT(v3_refusal(nested), testing::HasSubstr("nested deeper"));  // as JSON
}

}  // namespace data_type_v3_test
}  // namespace batchfs

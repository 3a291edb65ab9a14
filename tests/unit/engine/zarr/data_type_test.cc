#include "engine/zarr/data_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace data_type_test {

template <class Body>
std::string failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

DataType v2(const std::string& json, const std::string& object_codec = "") {
  const Json type = parse_json(json, "t");
  return parse_v2_type(JsonRef(type, "dtype"), object_codec);
}

std::string v2_refusal(const std::string& json, const std::string& object_codec = "") {
  return failure([&] { v2(json, object_codec); });
}

TEST(V2Type, EveryTypestr) {
  struct Case {
    const char* typestr;
    Kind kind;
    std::uint32_t itemsize;
    bool big_endian;
    /// str(np.dtype(typestr)) if that is the type's name, else native .str.
    const char* name;
    const char* descr;  // repr(np.dtype(typestr).newbyteorder("=").str)
  };
  const Case cases[] = {
      {"|b1", Kind::boolean, 1, false, "bool", "'|b1'"},
      {"|i1", Kind::signed_int, 1, false, "int8", "'|i1'"},
      {">u1", Kind::unsigned_int, 1, false, "uint8", "'|u1'"},
      {"<i2", Kind::signed_int, 2, false, "int16", "'<i2'"},
      {">i4", Kind::signed_int, 4, true, "int32", "'<i4'"},
      {">u8", Kind::unsigned_int, 8, true, "uint64", "'<u8'"},
      {"<f2", Kind::floating, 2, false, "float16", "'<f2'"},
      {">f4", Kind::floating, 4, true, "float32", "'<f4'"},
      {"<f8", Kind::floating, 8, false, "float64", "'<f8'"},
      {"<c8", Kind::complex, 8, false, "complex64", "'<c8'"},
      {">c16", Kind::complex, 16, true, "complex128", "'<c16'"},
      {"<M8[ns]", Kind::datetime, 8, false, "datetime64[ns]", "'<M8[ns]'"},
      {">M8[25us]", Kind::datetime, 8, true, "datetime64[25us]", "'<M8[25us]'"},
      {"<m8[D]", Kind::timedelta, 8, false, "timedelta64[D]", "'<m8[D]'"},
      {"<m8", Kind::timedelta, 8, false, "timedelta64", "'<m8'"},
      {"|S5", Kind::bytes, 5, false, "|S5", "'|S5'"},
      {"<U7", Kind::unicode, 28, false, "<U7", "'<U7'"},
      {">U1", Kind::unicode, 4, true, "<U1", "'<U1'"},
      {"|V3", Kind::raw, 3, false, "|V3", "'|V3'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.typestr);
    const DataType type = v2(std::string("\"") + c.typestr + "\"");
    EXPECT_EQ(type.kind, c.kind);
    EXPECT_EQ(type.itemsize, c.itemsize);
    EXPECT_EQ(type.big_endian, c.big_endian);
    EXPECT_EQ(type.name(), c.name);
    EXPECT_EQ(type.npy_descr(), c.descr);
  }
  EXPECT_EQ(v2("\"<M8[25us]\"").multiplier, 25);
  EXPECT_EQ(v2("\"<M8[25us]\"").unit, "us");
  EXPECT_EQ(v2("\"<m8\"").unit, "generic");
  EXPECT_EQ(v2("\"<M8[\u03bcs]\"").unit, "us");
}

TEST(V2Type, Structures) {
  const DataType type = v2(
      R"([["a", "<i2"], ["b", ">f8", [2, 3]], ["c", [["d", "|S3"], ["e", "<U1"]]], ["f", "|u1", 4]])");
  EXPECT_EQ(type.kind, Kind::structured);
  EXPECT_EQ(type.itemsize, 2u + 48 + 7 + 4);
  ASSERT_EQ(type.fields.size(), 4u);
  EXPECT_EQ(type.fields[1].offset, 2u);
  EXPECT_EQ(type.fields[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(type.fields[1].type.big_endian);
  EXPECT_EQ(type.fields[2].type.fields[1].offset, 3u);
  // numpy reads it back: np.lib.format.descr_to_dtype(ast.literal_eval(...)).itemsize == 61
  EXPECT_EQ(type.npy_descr(),
            "[('a', '<i2'), ('b', '<f8', (2,3,)), ('c', [('d', '|S3'), ('e', '<U1')]), ('f', "
            "'|u1', (4,))]");
  EXPECT_EQ(v2(R"([["it's", "<i2"]])").npy_descr(), "[('it\\'s', '<i2')]");
}

TEST(V2Type, ObjectsAreWhatTheirCodecMakesOfThem) {
  EXPECT_EQ(v2("\"|O\"", "vlen-utf8").kind, Kind::variable_string);
  EXPECT_EQ(v2("\"|O\"", "vlen-bytes").kind, Kind::variable_bytes);
  EXPECT_EQ(v2("\"|O\"", "json2").kind, Kind::variable_string);
  EXPECT_EQ(v2("\"|O\"", "categorize").kind, Kind::variable_string);
  EXPECT_THAT(v2_refusal("\"|O\"", "pickle"),
              testing::StartsWith("dtype: object arrays coded by 'pickle' are not supported: "));
  EXPECT_EQ(v2_refusal("\"|O\"", "other"),
            "dtype: object arrays coded by 'other' are not supported");
  EXPECT_EQ(v2_refusal("\"|O\""), "dtype: object arrays without an object codec are not supported");
}

TEST(V2Type, IsWrittenAsItWasRead) {
  for (const char* json :
       {R"("<f4")", R"(">M8[25us]")", R"("|S5")", R"("|b1")", R"(">U3")",
        R"([["a","<i2"],["b",">f8",[2,3]],["c",[["d","|S3"],["e",">U1"]]],["f","|u1"]])"})
    EXPECT_EQ(v2_descr(v2(json)).dump(), json);
}

TEST(V2Type, RefusesWhatIsNoType) {
  for (const char* text : {"", "<", "<f", "f4", "<fx", "<f4x", "<M8ns", "<M8[ns", "<M8[]",
                           "<M8[fortnight]", "<M8[0us]", "<M8[-1us]", "!f4", "<i99999999999"})
    EXPECT_EQ(v2_refusal(std::string("\"") + text + "\""),
              std::string("dtype: '") + text + "' is not a numpy data type");
  for (const char* text :
       {"<f3", "<f16", "<i16", "<u3", "<c4", "<M4[s]", "|b8", "|S2000000", "<q8", "|O8"})
    EXPECT_EQ(v2_refusal(std::string("\"") + text + "\""),
              std::string("dtype: the data type '") + text + "' is not supported");
  EXPECT_EQ(v2_refusal("\"<U300000\""), "dtype: strings of more than 1 MB are not supported");
  for (const char* text : {"|S0", "<U0", "|V0"})
    EXPECT_EQ(v2_refusal(std::string("\"") + text + "\""),
              std::string("dtype: elements of no bytes ('") + text + "') are not supported");
  EXPECT_EQ(v2_refusal("7"), "dtype: expected a string");
  EXPECT_EQ(v2_refusal("null"), "dtype: expected a string");
  EXPECT_EQ(v2_refusal("{}"), "dtype: expected a string");
}

TEST(V2Type, RefusesStructuresThatCannotBe) {
  EXPECT_EQ(v2_refusal("[]"), "dtype: a structured data type needs fields");
  EXPECT_EQ(v2_refusal("[7]"), "dtype[0]: expected a list");
  EXPECT_EQ(v2_refusal(R"([["a"]])"), "dtype[0]: expected [name, type] or [name, type, shape]");
  EXPECT_EQ(v2_refusal(R"([[1, "<i2"]])"), "dtype[0][0]: expected a string");
  EXPECT_EQ(v2_refusal(R"([["a", "<i2"], ["b", "nope"]])"),
            "dtype[1][1]: 'nope' is not a numpy data type");
  EXPECT_EQ(v2_refusal(R"([["a", "|O"]])"), "dtype[0][1]: '|O' is not a numpy data type");
  EXPECT_EQ(v2_refusal(R"([["a", "<i2", [-1]]])"),
            "dtype[0][2][0]: -1 is too small, the least is 0");
  EXPECT_EQ(v2_refusal(R"([["a", "<i2", "x"]])"), "dtype[0][2]: expected a whole number");
  EXPECT_EQ(v2_refusal(R"([["a", "<i2", [1000000, 1000000, 1000000, 1000000]]])"),
            "dtype[0]: fields of more than 1 MB are not supported");
  EXPECT_EQ(v2_refusal(R"([["a", "|V1000000"], ["b", "|V1000000"]])"),
            "dtype[1]: elements of more than 1 MB are not supported");
  EXPECT_EQ(v2_refusal(R"([["a", "<i2", [0]]])"), "dtype: elements of no bytes are not supported");
  std::string nested = "\"<i2\"";
  for (int i = 0; i < 20; ++i) nested = R"([["a", )" + nested + "]]";
  EXPECT_THAT(v2_refusal(nested),
              testing::HasSubstr("structured types nested this deep are not supported"));
}

TEST(NumpyType, NamesAndTypestrs) {
  EXPECT_EQ(parse_numpy_type("float32"), float32());
  EXPECT_EQ(parse_numpy_type("<f4"), float32());
  EXPECT_EQ(parse_numpy_type("f4"), float32());
  EXPECT_EQ(parse_numpy_type("bool"), make_type(Kind::boolean, 1));
  EXPECT_EQ(parse_numpy_type("uint16"), make_type(Kind::unsigned_int, 2));
  EXPECT_EQ(parse_numpy_type("datetime64[ns]"), datetime_ns());
  EXPECT_TRUE(parse_numpy_type(">i2").big_endian);
  for (const char* name : {"", "float", "float33", "float128", "float-32", "int 8", "flaot32",
                           "complex32", "datetime64[x]"})
    EXPECT_THROW(parse_numpy_type(name), Error) << name;
  EXPECT_THAT(failure([] { parse_numpy_type("quux"); }), testing::HasSubstr("'quux'"));
}

TEST(DataTypeEquality, SeesOrderUnitsAndFields) {
  EXPECT_NE(v2("\"<f4\""), v2("\">f4\""));
  EXPECT_NE(v2("\"<M8[s]\""), v2("\"<M8[ms]\""));
  EXPECT_NE(v2("\"<M8[s]\""), v2("\"<M8[2s]\""));
  EXPECT_NE(v2(R"([["a", "<f4"]])"), v2(R"([["b", "<f4"]])"));
  EXPECT_NE(v2(R"([["a", "<f4", [1]]])"), v2(R"([["a", "<f4"]])"));
  EXPECT_EQ(v2(R"([["a", "<f4", [2]]])"), v2(R"([["a", "<f4", 2]])"));
}

}  // namespace data_type_test
}  // namespace batchfs

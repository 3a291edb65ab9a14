#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/zarr/array_metadata.h"

namespace batchfs {
namespace metadata_v2_test {

/// A .zarray of zarr-python 2 with `change` on top.
Json zarray(const char* change = "{}") {
  Json json = parse_json(
      R"({"zarr_format": 2, "shape": [10, 20], "chunks": [5, 7], "dtype": "<f4", "order": "C",
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    "fill_value": "NaN", "filters": null})",
      "t");
  json.update(parse_json(change, "t"));
  return json;
}

ArrayMetadata parse(const char* change = "{}", const Json& attributes = Json::object()) {
  return parse_array_v2("g/a", zarray(change), attributes, "g/a/.zarray");
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const char* change) {
  return refusal([&] { parse(change); });
}

std::vector<std::string> names(const ArrayMetadata& array) {
  std::vector<std::string> result;
  for (const CodecSpec& codec : array.codecs) result.push_back(codec.name);
  return result;
}

TEST(MetadataV2, OfAnOrdinaryArray) {
  const ArrayMetadata array = parse("{}", {{"units", "K"}});
  EXPECT_EQ(array.path, "g/a");
  EXPECT_EQ(array.zarr_format, 2);
  EXPECT_EQ(array.shape, (Dims{10, 20}));
  EXPECT_EQ(array.chunk_shape, (Dims{5, 7}));
  EXPECT_EQ(array.type, float32());
  EXPECT_EQ(array.fill_value_json, "NaN");
  EXPECT_EQ(array.attributes["units"], "K");
  EXPECT_EQ(array.unsupported, "");
  EXPECT_THAT(names(array), testing::ElementsAre("bytes", "blosc"));
  EXPECT_EQ(array.codecs[1].configuration["cname"], "lz4");
  EXPECT_FALSE(array.codecs[1].configuration.contains("id"));
  EXPECT_EQ(array.key_encoding.key({1, 2}), "1.2");
  EXPECT_TRUE(array.dimension_names.empty());
}

TEST(MetadataV2, CodecsAreInTheOrderOfEncoding) {
  const ArrayMetadata array = parse(R"({"order": "F", "dtype": ">i4", "fill_value": 0,
      "filters": [{"id": "delta", "dtype": ">i4"}, {"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib"}})");
  EXPECT_THAT(names(array), testing::ElementsAre("transpose", "bytes", "delta", "shuffle", "zlib"));
  EXPECT_EQ(array.codecs[0].configuration["order"], Json::array({1, 0}));
  EXPECT_EQ(array.codecs[1].configuration["endian"], "big");
}

TEST(MetadataV2, OrderFOfOneDimensionIsOrderC) {
  EXPECT_THAT(names(parse(R"({"order": "F", "shape": [4], "chunks": [4], "compressor": null})")),
              testing::ElementsAre("bytes"));
}

TEST(MetadataV2, TakesWhatWritersDo) {
  EXPECT_THAT(names(parse(R"({"filters": []})")), testing::ElementsAre("bytes", "blosc"));
  EXPECT_EQ(parse(R"({"dimension_separator": "/"})").key_encoding.key({1, 2}), "1/2");
  EXPECT_EQ(parse(R"({"dimension_separator": null})").key_encoding.key({1, 2}), "1.2");
  EXPECT_EQ(parse(R"({"_NCZARR_ARRAY": {"dimrefs": ["/x"]}, "anything": 7})").unsupported, "");
  EXPECT_EQ(parse(R"({"fill_value": null})").fill_value, std::vector<std::byte>(4));
  EXPECT_EQ(parse(R"({"fill_value": NaN})").fill_value_json, "NaN");
  Json without = zarray();
  without.erase("fill_value");
  without.erase("filters");
  without.erase("compressor");
  const ArrayMetadata array = parse_array_v2("a", without, Json::object(), "a");
  EXPECT_EQ(array.fill_value, std::vector<std::byte>(4));
  EXPECT_TRUE(array.fill_value_json.is_null());
  EXPECT_THAT(names(array), testing::ElementsAre("bytes"));
}

TEST(MetadataV2, EveryKeyIsNeededAndOfItsType) {
  for (const char* key : {"zarr_format", "shape", "chunks", "dtype", "order"}) {
    Json json = zarray();
    json.erase(key);
    EXPECT_EQ(refusal([&] { parse_array_v2("a", json, Json::object(), "a/.zarray"); }),
              std::string("the key '") + key + "' is missing (a/.zarray)");
    for (const Json& wrong :
         {Json(nullptr), Json(true), Json(Json::object()), Json("x"), Json(-1.5)}) {
      json[key] = wrong;
      EXPECT_THAT(refusal([&] { parse_array_v2("a", json, Json::object(), "a/.zarray"); }),
                  testing::AllOf(testing::StartsWith(key), testing::HasSubstr("(a/.zarray)")))
          << key << " " << wrong;
    }
  }
  for (const char* document : {"[]", "7", "null", "\"x\""})
    EXPECT_EQ(refusal([&] { parse_array_v2("a", parse_json(document, "t"), Json::object(), "a"); }),
              "expected an object (a)");
}

TEST(MetadataV2, NamesThePathOfWhatIsWrong) {
  EXPECT_EQ(refusal(R"({"zarr_format": 3})"), "zarr_format: expected 2 (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"zarr_format": "2"})"),
            "zarr_format: expected a whole number (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"shape": [10, -20]})"),
            "shape[1]: -20 is too small, the least is 0 (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"chunks": [5, 0]})"),
            "chunks[1]: 0 is too small, the least is 1 (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"chunks": [5]})"),
            "chunks: as many lengths as dimensions are needed (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"chunks": true})"), "chunks: expected a list (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"dtype": "nope"})"),
            "dtype: 'nope' is not a numpy data type (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"fill_value": "x"})"), "fill_value: 'x' is not a number (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"order": "A"})"), "order: expected \"C\" or \"F\" (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"filters": {}})"), "filters: expected a list (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"filters": [7]})"), "filters[0]: expected an object (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"filters": [{"id": "delta"}, {}]})"),
            "filters[1]: the key 'id' is missing (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"filters": [{"id": 7}]})"),
            "filters[0].id: expected a string (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"compressor": "blosc"})"), "compressor: expected an object (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"compressor": []})"), "compressor: expected an object (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"dimension_separator": "-"})"),
            "dimension_separator: expected \".\" or \"/\" (g/a/.zarray)");
  EXPECT_EQ(refusal([] { parse_array_v2("a", zarray(), Json::array(), "a"); }),
            ".zattrs is not an object (a)");
}

TEST(MetadataV2, RefusesSizesThatCannotBe) {
  EXPECT_EQ(refusal(R"({"shape": [9223372036854775807, 2]})"),
            "the shape has more than 2^63 elements (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"shape": [9223372036854775808, 2]})"),
            "shape[0]: the number is too large (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"shape": [4611686018427387904, 1]})"),
            "arrays larger than 2^63 bytes are not supported (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"chunks": [1099511627776, 1]})"),
            "chunks larger than 1 TB are not supported (g/a/.zarray)");
  EXPECT_EQ(refusal(R"({"chunks": [4294967296, 4294967296]})"),
            "the shape has more than 2^63 elements (g/a/.zarray)");
  // Also if the values cannot be read: sizes are shown in any case.
  EXPECT_EQ(refusal(R"({"dtype": "<f16", "shape": [9223372036854775807, 2]})"),
            "the shape has more than 2^63 elements (g/a/.zarray)");
  // 2^40 chunks are many, but an array.
  EXPECT_EQ(parse(R"({"shape": [1099511627776], "chunks": [1]})").shape, (Dims{INT64_C(1) << 40}));
}

TEST(MetadataV2, TypesThatAreNotHandledLeaveTheMetadataReadable) {
  const ArrayMetadata array = parse(R"({"dtype": "<f16"})");
  EXPECT_EQ(array.unsupported, "dtype: the data type '<f16' is not supported");
  EXPECT_EQ(array.shape, (Dims{10, 20}));
  EXPECT_THAT(parse(R"({"dtype": "|O", "filters": [{"id": "pickle"}]})").unsupported,
              testing::StartsWith("dtype: object arrays coded by 'pickle' are not supported: "));
}

TEST(MetadataV2, FieldsHaveByteOrdersOfTheirOwn) {
  const ArrayMetadata array =
      parse(R"({"dtype": [["a", ">i2"], ["b", "<f4"]], "fill_value": null})");
  EXPECT_EQ(array.unsupported, "");
  ASSERT_EQ(array.codecs.front().name, "bytes");
  EXPECT_FALSE(array.codecs.front().configuration.contains("endian"));
}

}  // namespace metadata_v2_test
}  // namespace batchfs

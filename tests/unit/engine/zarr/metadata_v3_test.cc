#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/zarr/array_metadata.h"

namespace batchfs {
namespace metadata_v3_test {

/// A zarr.json of zarr-python 3 with `change` on top.
Json document(const char* change = "{}") {
  Json json = parse_json(
      R"({"zarr_format": 3, "node_type": "array", "shape": [10, 20], "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 7]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "NaN",
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
               {"name": "zstd", "configuration": {"level": 0, "checksum": false}}],
    "attributes": {"units": "K"}, "dimension_names": ["y", null], "storage_transformers": []})",
      "t");
  json.update(parse_json(change, "t"));
  return json;
}

ArrayMetadata parse(const char* change = "{}") {
  return parse_array_v3("g/a", document(change), "g/a/zarr.json");
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

TEST(MetadataV3, OfAnOrdinaryArray) {
  const ArrayMetadata array = parse();
  EXPECT_EQ(array.zarr_format, 3);
  EXPECT_EQ(array.shape, (Dims{10, 20}));
  EXPECT_EQ(array.chunk_shape, (Dims{5, 7}));
  EXPECT_EQ(array.type, float32());
  EXPECT_EQ(array.attributes["units"], "K");
  EXPECT_EQ(array.unsupported, "");
  ASSERT_EQ(array.codecs.size(), 2u);
  EXPECT_EQ(array.codecs[1].name, "zstd");
  EXPECT_EQ(array.codecs[1].configuration["level"], 0);
  EXPECT_EQ(array.key_encoding.key({1, 2}), "c/1/2");
  EXPECT_EQ(array.dimension_names, (std::vector<std::optional<std::string>>{"y", std::nullopt}));
}

TEST(MetadataV3, TakesShortFormsAndWhatMayBeLeftOut) {
  const ArrayMetadata array = parse(
      R"({"codecs": ["bytes", "crc32c", {"name": "numcodecs.zlib", "configuration": {"level": 1}}],
      "data_type": {"name": "uint8"}, "fill_value": 0, "chunk_key_encoding": "default", "attributes": null,
      "dimension_names": null, "storage_transformers": null, "consolidated_metadata": null})");
  EXPECT_EQ(array.codecs[1].name, "crc32c");
  EXPECT_EQ(array.codecs[2].name, "zlib");
  EXPECT_EQ(array.key_encoding.key({1, 2}), "c/1/2");
  EXPECT_TRUE(array.dimension_names.empty());
  EXPECT_EQ(array.unsupported, "");
  Json least = document();
  for (const char* key : {"attributes", "dimension_names", "storage_transformers"})
    least.erase(key);
  EXPECT_EQ(parse_array_v3("a", least, "a").unsupported, "");
}

TEST(MetadataV3, KeysOfChunks) {
  EXPECT_EQ(
      parse(R"({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}})")
          .key_encoding.key({1, 2}),
      "c.1.2");
  EXPECT_EQ(parse(R"({"chunk_key_encoding": {"name": "v2"}})").key_encoding.key({1, 2}), "1.2");
  EXPECT_EQ(parse(R"({"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}})")
                .key_encoding.key({1, 2}),
            "1/2");
}

TEST(MetadataV3, ByteOrderIsTheBytesCodecs) {
  EXPECT_TRUE(parse(R"({"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]})")
                  .type.big_endian);
  EXPECT_FALSE(parse(R"({"data_type": "int8", "fill_value": 0,
                         "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]})")
                   .type.big_endian);
}

TEST(MetadataV3, EveryKeyIsNeededAndOfItsType) {
  for (const char* key : {"zarr_format", "node_type", "shape", "data_type", "chunk_grid",
                          "chunk_key_encoding", "fill_value", "codecs"}) {
    Json json = document();
    json.erase(key);
    EXPECT_EQ(refusal([&] { parse_array_v3("a", json, "a/zarr.json"); }),
              std::string("the key '") + key + "' is missing (a/zarr.json)");
    for (const Json& wrong : {Json(nullptr), Json(true), Json(Json::object()), Json(-1.5),
                              Json(Json::array({Json::array()}))}) {
      if (std::string(key) == "fill_value" && (wrong.is_boolean() || wrong.is_number()))
        continue;  // floats are lenient
      json[key] = wrong;
      EXPECT_THAT(refusal([&] { parse_array_v3("a", json, "a/zarr.json"); }),
                  testing::AllOf(testing::StartsWith(key), testing::HasSubstr("(a/zarr.json)")))
          << key << " " << wrong;
    }
  }
  for (const char* text : {"[]", "7", "null", "\"x\""})
    EXPECT_EQ(refusal([&] { parse_array_v3("a", parse_json(text, "t"), "a"); }),
              "expected an object (a)");
}

TEST(MetadataV3, NamesThePathOfWhatIsWrong) {
  EXPECT_EQ(refusal(R"({"zarr_format": 2})"), "zarr_format: expected 3 (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"node_type": "group"})"), "node_type: expected \"array\" (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"shape": [10, "20"]})"),
            "shape[1]: expected a whole number (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"chunk_grid": {"name": "regular"}})"),
            "chunk_grid.configuration: the key 'chunk_shape' is missing (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"chunk_grid": {"name": "regular", "configuration": []}})"),
            "chunk_grid.configuration: expected an object (g/a/zarr.json)");
  EXPECT_EQ(
      refusal(R"({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 0]}}})"),
      "chunk_grid.configuration.chunk_shape[1]: 0 is too small, the least is 1 (g/a/zarr.json)");
  EXPECT_EQ(
      refusal(R"({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5]}}})"),
      "chunk_grid.configuration.chunk_shape: as many lengths as dimensions are needed "
      "(g/a/zarr.json)");
  EXPECT_EQ(
      refusal(
          R"({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}})"),
      "chunk_key_encoding.configuration.separator: expected \".\" or \"/\" (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"codecs": []})"),
            "codecs: a list with at least one codec is needed (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"codecs": [{"name": "bytes"}, 7]})"),
            "codecs[1]: expected an object (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"codecs": [{"configuration": {}}]})"),
            "codecs[0]: the key 'name' is missing (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"codecs": [{"name": "bytes", "configuration": 7}]})"),
            "codecs[0].configuration: expected an object (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"attributes": []})"), "attributes: expected an object (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"dimension_names": ["x"]})"),
            "dimension_names: as many names as dimensions are needed (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"dimension_names": ["x", 7]})"),
            "dimension_names[1]: expected a string (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"storage_transformers": {}})"),
            "storage_transformers: expected a list (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"fill_value": "0x7fc"})"),
            "fill_value: not the bits of a floating-point number of this size (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"my_extension": {"must_understand": "no"}})"),
            "my_extension.must_understand: expected true or false (g/a/zarr.json)");
}

TEST(MetadataV3, RefusesSizesThatCannotBe) {
  EXPECT_EQ(refusal(R"({"shape": [9223372036854775807, 2]})"),
            "the shape has more than 2^63 elements (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"shape": [9223372036854775807, 2], "data_type": "int4"})"),
            "the shape has more than 2^63 elements (g/a/zarr.json)");
  EXPECT_EQ(refusal(R"({"shape": [4611686018427387904, 1]})"),
            "arrays larger than 2^63 bytes are not supported (g/a/zarr.json)");
  EXPECT_EQ(
      refusal(
          R"({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1099511627776, 1]}}})"),
      "chunks larger than 1 TB are not supported (g/a/zarr.json)");
}

TEST(MetadataV3, WhatIsNotHandledLeavesTheMetadataReadable) {
  auto unsupported = [](const char* change) {
    const ArrayMetadata array = parse(change);
    EXPECT_EQ(array.shape, (Dims{10, 20}));
    EXPECT_EQ(array.attributes["units"], "K");
    return array.unsupported;
  };
  EXPECT_EQ(unsupported(R"({"data_type": "float16x2"})"),
            "data_type: the data type 'float16x2' is not supported");
  EXPECT_EQ(unsupported(R"({"chunk_grid": {"name": "rectilinear", "configuration": {}}})"),
            "chunk_grid: the chunk grid 'rectilinear' is not supported; xarray copies the store to "
            "regular chunks, with ZARR_ARRAY__RECTILINEAR_CHUNKS=True: "
            "xr.open_zarr(STORE, chunks=None).drop_encoding().to_zarr(COPY)");
  EXPECT_EQ(unsupported(R"({"chunk_key_encoding": {"name": "fanout"}})"),
            "chunk_key_encoding: the chunk key encoding 'fanout' is not supported");
  EXPECT_EQ(unsupported(R"({"storage_transformers": [{"name": "x"}]})"),
            "storage_transformers: storage transformers are not supported");
  EXPECT_EQ(unsupported(R"({"my_extension": {"name": "x"}})"),
            "my_extension: this extension of the metadata is not supported");
  EXPECT_EQ(unsupported(R"({"my_extension": {"must_understand": true}})"),
            "my_extension: this extension of the metadata is not supported");
  EXPECT_EQ(unsupported(R"({"my_extension": 7})"),
            "my_extension: this extension of the metadata is not supported");
  EXPECT_EQ(unsupported(R"({"my_extension": {"must_understand": false}})"), "");
  EXPECT_EQ(unsupported(R"({"data_type": "variable_length_bytes", "fill_value": ""})"), "");
}

}  // namespace metadata_v3_test
}  // namespace batchfs

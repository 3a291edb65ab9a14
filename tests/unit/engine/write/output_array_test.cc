// Expected documents are those of zarr-python 3.
#include "engine/write/output_array.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace output_array_test {

/// The order of keys has no meaning.
nlohmann::json sorted(const Json& json) { return nlohmann::json::parse(json.dump()); }

ArrayMetadata v2_source(const char* dtype, Json fill, Json attributes) {
  return parse_array_v2("t",
                        {{"zarr_format", 2},
                         {"shape", {3, 4}},
                         {"chunks", {3, 4}},
                         {"dtype", dtype},
                         {"compressor", nullptr},
                         {"fill_value", std::move(fill)},
                         {"order", "C"},
                         {"filters", nullptr}},
                        std::move(attributes), "t/.zarray");
}

const char* const kSharded = R"({
  "shape": [3, 4], "data_type": "float32",
  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 4]}},
  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
  "fill_value": 0.0,
  "codecs": [{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [1, 2],
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
               {"name": "zstd", "configuration": {"level": 3, "checksum": false}}],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    "index_location": "end"}}],
  "attributes": {}, "dimension_names": ["y", "x"], "zarr_format": 3, "node_type": "array",
  "storage_transformers": []})";

TEST(OutputArray, ShardsOfFormat3) {
  const ArrayMetadata source = v2_source("<f4", nullptr, {{"_ARRAY_DIMENSIONS", {"y", "x"}}});
  const OutputArray made =
      make_output_array(source, "t", 3, {{1, 2}, {2, 4}, true}, parse_compression("zstd:3"));
  EXPECT_EQ(sorted(made.document), nlohmann::json::parse(kSharded));
  EXPECT_EQ(made.metadata->chunk_shape, (Dims{2, 4}));
  EXPECT_EQ(made.chain->decoded_size(), 1u * 2 * 4);
}

TEST(OutputArray, TheMaskedValueMovesBetweenFormats) {
  const ArrayMetadata old =
      v2_source("<f4", -1.0, {{"_ARRAY_DIMENSIONS", {"y", "x"}}, {"units", "K"}});
  const OutputChunks chunks{{3, 4}, {3, 4}};
  const OutputArray three = make_output_array(old, "t", 3, chunks, parse_compression("none"));
  EXPECT_EQ(three.document["fill_value"], -1.0);
  EXPECT_EQ(three.document["attributes"],
            Json::parse(R"({"units": "K", "_FillValue": "AAAAAAAA8L8="})"));
  const OutputArray two =
      make_output_array(*three.metadata, "t", 2, chunks, parse_compression("none"));
  EXPECT_EQ(two.document["fill_value"], -1.0);
  EXPECT_EQ(sorted(two.attributes), sorted(old.attributes));
  EXPECT_FALSE(two.writes_fill);
}

TEST(OutputArray, AFillValueThatMasksNothingIsNoneInFormat2) {
  Json document = Json::parse(kSharded);
  const ArrayMetadata source = parse_array_v3("t", document, "t/zarr.json");
  const OutputArray made =
      make_output_array(source, "t", 2, {{3, 4}, {3, 4}}, parse_compression("gzip:1"));
  EXPECT_TRUE(made.document["fill_value"].is_null());
  EXPECT_TRUE(made.writes_fill);  // chunks of zeros must exist
  EXPECT_EQ(made.document["compressor"], Json::parse(R"({"id": "gzip", "level": 1})"));
  EXPECT_EQ(made.attributes["_ARRAY_DIMENSIONS"], Json::parse(R"(["y", "x"])"));
}

TEST(OutputArray, ByteOrderIsKeptInFormat2AndLittleInFormat3) {
  const ArrayMetadata source = v2_source(">i2", 0, Json::object());
  const OutputChunks chunks{{3, 4}, {3, 4}};
  const OutputArray two = make_output_array(source, "t", 2, chunks, parse_compression("none"));
  EXPECT_EQ(two.document["dtype"], ">i2");
  EXPECT_TRUE(two.metadata->type.big_endian);
  const OutputArray three = make_output_array(source, "t", 3, chunks, parse_compression("none"));
  EXPECT_EQ(three.document["codecs"],
            Json::parse(R"([{"name": "bytes", "configuration": {"endian": "little"}}])"));
  EXPECT_FALSE(three.document.contains("dimension_names"));
}

TEST(OutputArray, WhatAFormatCannotHoldIsNamed) {
  const ArrayMetadata source = v2_source("<f4", 0, Json::object());
  const auto why_not = [&](int format, const OutputChunks& chunks) {
    try {
      make_output_array(source, "t", format, chunks, parse_compression("none"));
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), "t");
      return error.why();
    }
    return std::string();
  };
  EXPECT_NE(why_not(3, {{2, 4}, {3, 4}, true}).find("not a whole number of chunks of 2"),
            std::string::npos);
  EXPECT_NE(why_not(2, {{1, 4}, {2, 4}, true}).find("no shards"), std::string::npos);
}

TEST(OutputArray, SmallNumbersHaveTheirTypeInMemory) {
  Json document = Json::parse(kSharded);
  document["data_type"] = "bfloat16";
  document["fill_value"] = "0xc040";
  const ArrayMetadata source = parse_array_v3("t", document, "t/zarr.json");
  const OutputArray made =
      make_output_array(source, "t", 3, {{1, 2}, {2, 4}, true}, parse_compression("none"));
  EXPECT_EQ(made.document["data_type"], "float32");
  EXPECT_EQ(made.document["fill_value"], -3.0);
  EXPECT_EQ(made.metadata->stored, nullptr);
  EXPECT_EQ(made.chain->encoded_size(), 8u);
}

}  // namespace output_array_test
}  // namespace batchfs

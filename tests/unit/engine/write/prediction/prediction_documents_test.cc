#include "engine/write/prediction/prediction_documents.h"

#include <gtest/gtest.h>

#include "engine/store/store.h"
#include "engine/zarr/hierarchy.h"
#include "tests/unit/engine/store/temporary_directory.h"
#include "tests/unit/engine/write/prediction/prediction_oracle.h"

namespace batchfs {
namespace prediction_documents_test {

PredictedArray field(const std::string& name, const DataType& type) {
  return {.name = name,
          .tensor = name,
          .axes = {window_axis("time", 6, 0, 1), whole_axis("x", 4)},
          .order = {0, 1},
          .tensor_shape = {1, 4},
          .tensor_dims = {"sample", "time", "x"},
          .type = type,
          .attributes = {{"units", "K"}, {"_FillValue", 7}}};
}

std::vector<Placement> placed(const std::vector<PredictedArray>& arrays) {
  PredictionOptions options;
  options.chunks = {{"time", 2}};
  options.shards = {{"time", 4}};
  std::vector<Placement> placements;
  for (const PredictedArray& array : arrays)
    placements.emplace_back(array, grid_samples({{0, 1, 2, 3, 4, 5}}), options);
  return placements;
}

TEST(PredictionDocuments, DescribeArraysAsXarrayWritesThem) {
  const TemporaryDirectory directory;
  const auto output = open_local_output(directory / "o");
  output->put("p/c/0/0", "x");
  const auto placements =
      placed({field("p", float32()), field("n", make_type(Kind::signed_int, 2))});
  PredictionDocuments(placements, Compression{}).put_rest(*output);
  const auto store = open_store(directory / "o");
  const Hierarchy hierarchy = open_hierarchy(*store);
  EXPECT_TRUE(hierarchy.consolidated);
  const ArrayMetadata& p = hierarchy.array("p");
  EXPECT_EQ(p.shape, (Dims{6, 4}));
  EXPECT_EQ(p.chunk_shape, (Dims{4, 4}));
  EXPECT_EQ(p.codecs.front().name, "sharding_indexed");
  EXPECT_EQ(p.attributes, (Json{{"units", "K"}, {"_FillValue", "AAAAAAAA+H8="}}));
  EXPECT_EQ(p.document["fill_value"], "NaN");
  EXPECT_EQ(p.document["dimension_names"], (Json{"time", "x"}));
  const ArrayMetadata& n = hierarchy.array("n");
  EXPECT_EQ(n.attributes, (Json{{"units", "K"}}));
  EXPECT_EQ(n.document["fill_value"], 0);
}

TEST(PredictionDocuments, TheIdentityDependsOnEverythingThatIsStored) {
  const auto identity = [](const PredictedArray& array, const char* codec) {
    return PredictionDocuments(placed({array}), parse_compression(codec)).identity();
  };
  const PredictedArray array = field("p", float32());
  const Json first = identity(array, "zstd");
  EXPECT_EQ(identity(array, "zstd:3"), first);
  EXPECT_NE(identity(array, "zstd:4")["arrays"], first["arrays"]);
  EXPECT_NE(identity(field("p", float64()), "zstd")["arrays"], first["arrays"]);
  PredictedArray other = array;
  other.attributes["units"] = "C";
  EXPECT_NE(identity(other, "zstd")["arrays"], first["arrays"]);
  other = array;
  CoordinateLabels labels{.type = make_type(Kind::signed_int, 1)};
  labels.values.resize(4);
  other.axes[1].labels = std::make_shared<const CoordinateLabels>(labels);
  const Json labelled = identity(other, "zstd");
  EXPECT_EQ(labelled["arrays"], first["arrays"]);
  EXPECT_NE(labelled["coordinates"], first["coordinates"]);
  labels.values[2] = std::byte{1};
  other.axes[1].labels = std::make_shared<const CoordinateLabels>(labels);
  EXPECT_NE(identity(other, "zstd")["coordinates"], labelled["coordinates"]);
}

TEST(PredictionDocuments, ObjectsAreThereEvenIfAllIsFill) {
  const TemporaryDirectory directory;
  const auto output = open_local_output(directory / "o");
  const auto placements = placed({field("p", float32())});
  const PredictionDocuments documents(placements, parse_compression("none"));
  const std::vector<float> values(8, std::numeric_limits<float>::quiet_NaN());
  documents.put_object(0, placements[0], 1, reinterpret_cast<const std::byte*>(values.data()),
                       *output);
  // A chunk of 32 bytes, an index of two entries of which one is empty, and its checksum.
  EXPECT_EQ(output->get("p/c/1/0")->size(), 32u + 32 + 4);
}

}  // namespace prediction_documents_test
}  // namespace batchfs

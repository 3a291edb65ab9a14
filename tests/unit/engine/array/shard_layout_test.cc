#include "engine/array/shard_layout.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace shard_layout_test {

const Json kBytes = {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};

ArrayMetadata metadata_with(const Json& codecs) {
  return parse_array_v3(
      "a",
      {{"zarr_format", 3},
       {"node_type", "array"},
       {"shape", {5, 7}},
       {"data_type", "int32"},
       {"fill_value", 0},
       {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", {4, 6}}}}}},
       {"chunk_key_encoding", {{"name", "default"}}},
       {"codecs", codecs}},
      "a/zarr.json");
}

Json sharding() {
  const Json list = Json::array({kBytes});
  return {{"name", "sharding_indexed"},
          {"configuration", {{"chunk_shape", {2, 3}}, {"codecs", list}, {"index_codecs", list}}}};
}

TEST(ShardLayoutOf, InnerChunksCanBeReadAlone) {
  const auto layout = shard_layout_of(metadata_with(Json::array({sharding()})));
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layout->inner_shape, (Dims{2, 3}));
}

TEST(ShardLayoutOf, AShardThatIsCompressedIsOneChunk) {
  const Json gzip = {{"name", "gzip"}, {"configuration", {{"level", 1}}}};
  EXPECT_EQ(shard_layout_of(metadata_with(Json::array({sharding(), gzip}))), nullptr);
  EXPECT_EQ(shard_layout_of(metadata_with(Json::array({kBytes}))), nullptr);
}

TEST(ShardLayoutOf, TheFormOfAChunk) {
  const ChunkLayout layout = chunk_layout_of(metadata_with(Json::array({kBytes})));
  EXPECT_EQ(layout.shape, (Dims{4, 6}));
  EXPECT_EQ(layout.type.name(), "int32");
}

}  // namespace shard_layout_test
}  // namespace batchfs

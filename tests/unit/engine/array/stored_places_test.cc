#include "engine/array/stored_places.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/codec/damage.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace stored_places_test {

const Json kBytes = Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});

/// 5 by 7 in objects of 4 by 6.
std::unique_ptr<const Array> array_with(const std::shared_ptr<MemoryStore>& store,
                                        const Json& codecs) {
  const Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", {5, 7}},
      {"data_type", "int32"},
      {"fill_value", 0},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", {4, 6}}}}}},
      {"chunk_key_encoding", {{"name", "default"}}},
      {"codecs", codecs}};
  const std::string text = document.dump();
  store->set("a/zarr.json", Bytes(reinterpret_cast<const std::byte*>(text.data()),
                                  reinterpret_cast<const std::byte*>(text.data()) + text.size()));
  return std::make_unique<const Array>(
      store, std::make_shared<const ArrayMetadata>(parse_array_v3("a", document, "a/zarr.json")));
}

TEST(StoredPlaces, AnObjectOfALocalStoreHasItsSize) {
  const auto store = std::make_shared<MemoryStore>();
  store->set("a/c/1/0", Bytes(96));
  const auto array = array_with(store, kBytes);
  const StoredPlaces places(*array);
  const auto place = places.find(array->grid().linear({1, 0}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->key, "a/c/1/0");
  EXPECT_EQ(place->size, 96u);
  EXPECT_FALSE(place->in_shard);
  EXPECT_FALSE(places.find(0));
}

TEST(StoredPlaces, AChunkOfAShardHasItsPlaceInIt) {
  const auto store = std::make_shared<MemoryStore>();
  const Json sharding = {{"chunk_shape", {2, 3}}, {"codecs", kBytes}, {"index_codecs", kBytes}};
  const auto array =
      array_with(store, Json::array({{{"name", "sharding_indexed"}, {"configuration", sharding}}}));
  Bytes shard(48);
  const Bytes index =
      bytes_of(std::vector<std::uint64_t>{UINT64_MAX, UINT64_MAX, 24, 24, 0, 24, 1000, 24});
  shard.insert(shard.end(), index.begin(), index.end());
  store->set("a/c/0/0", shard);
  const StoredPlaces places(*array);
  const auto place = places.find(array->grid().linear({0, 1}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->key, "a/c/0/0");
  EXPECT_EQ(place->offset, 24u);
  EXPECT_EQ(place->size, 24u);
  EXPECT_TRUE(place->in_shard);
  EXPECT_FALSE(places.find(array->grid().linear({0, 0}))) << "the index has no such chunk";
  EXPECT_FALSE(places.find(array->grid().linear({2, 0}))) << "there is no such shard";
  EXPECT_THROW(places.find(array->grid().linear({1, 1})), Error) << "outside of the shard";
}

}  // namespace stored_places_test
}  // namespace batchfs

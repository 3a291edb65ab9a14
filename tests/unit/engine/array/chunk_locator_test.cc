#include "engine/array/chunk_locator.h"

#include "engine/store/object_versions.h"
#include "tests/unit/engine/codec/damage.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace chunk_locator_test {

constexpr std::uint64_t kMissing = UINT64_MAX;

std::shared_ptr<const ArrayMetadata> metadata_v3(const Json& codecs,
                                                 const std::string& path = "a") {
  const Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", {5, 7}},
      {"data_type", "int32"},
      {"fill_value", 0},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", {4, 6}}}}}},
      {"chunk_key_encoding", {{"name", "default"}}},
      {"codecs", codecs}};
  return std::make_shared<const ArrayMetadata>(parse_array_v3(path, document, "a/zarr.json"));
}

/// Shards of 4 by 6 that hold chunks of 2 by 3: two along either dimension. Their index, 64 bytes,
/// is at the end.
struct Shards {
  Shards() {
    const Json bytes =
        Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});
    const Json sharding = {{"chunk_shape", {2, 3}}, {"codecs", bytes}, {"index_codecs", bytes}};
    metadata =
        metadata_v3(Json::array({{{"name", "sharding_indexed"}, {"configuration", sharding}}}));
    layout = std::make_shared<const ShardLayout>(
        JsonRef(sharding, "sharding_indexed"),
        ChunkLayout{metadata->chunk_shape, metadata->type, metadata->fill_value});
  }
  /// A shard of 200 bytes: the given index of its four chunks, after 136 bytes that are never read.
  void set(const std::string& key, const std::vector<std::uint64_t>& index) const {
    Bytes shard(136);
    const Bytes entries = bytes_of(index);
    shard.insert(shard.end(), entries.begin(), entries.end());
    store->set(key, shard);
  }
  std::unique_ptr<ChunkLocator> locator() const {
    return std::make_unique<ChunkLocator>(store, metadata, layout);
  }

  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::shared_ptr<const ArrayMetadata> metadata;
  std::shared_ptr<const ShardLayout> layout;
};

void expect(const ChunkLocator::Location& location, const std::string& key, std::uint64_t offset,
            std::uint64_t length) {
  const std::optional<ChunkPlace>& place = location.place;
  ASSERT_TRUE(place);
  EXPECT_EQ(place->key, key);
  EXPECT_EQ(place->offset, offset);
  EXPECT_EQ(place->length, length);
}

TEST(ChunkLocator, AChunkOfItsOwnIsAWholeObjectThatIsNotLookedAt) {
  const auto store = std::make_shared<MemoryStore>();
  const Json bytes = Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});
  const ChunkLocator locator(store, metadata_v3(bytes), nullptr);
  EXPECT_FALSE(locator.is_sharded());
  const auto place = locator.locate_local({1, 0}).place;
  ASSERT_TRUE(place);
  EXPECT_EQ(place->key, "a/c/1/0");
  EXPECT_EQ(place->offset, 0u);
  EXPECT_EQ(place->length, std::nullopt);
  EXPECT_TRUE(store->reads.empty());
  EXPECT_EQ(ChunkLocator(store, metadata_v3(bytes, ""), nullptr).object_key({1, 0}),
            "c/1/0");  // at the root
}

TEST(ChunkLocator, FindsChunksInTheirShards) {
  const Shards shards;
  shards.set("a/c/0/0", {0, 24, 24, 30, 60, 10, kMissing, kMissing});
  shards.set("a/c/0/1", {7, 1, kMissing, kMissing, 8, 2, kMissing, kMissing});
  const auto locator = shards.locator();
  EXPECT_TRUE(locator->is_sharded());
  expect(locator->locate_local({0, 0}), "a/c/0/0", 0, 24);
  expect(locator->locate_local({0, 1}), "a/c/0/0", 24, 30);
  expect(locator->locate_local({1, 0}), "a/c/0/0", 60, 10);
  EXPECT_EQ(locator->locate_local({1, 1}).place, std::nullopt);
  expect(locator->locate_local({1, 2}), "a/c/0/1", 8, 2);
  EXPECT_TRUE(locator->locate_local({2, 0}).object_missing);  // no such shard
  EXPECT_FALSE(locator->locate_local({1, 1}).object_missing);
}

TEST(ChunkLocator, ReadsAnIndexOnce) {
  const Shards shards;
  shards.set("a/c/0/0", {0, 24, 24, 30, 60, 10, kMissing, kMissing});
  const auto locator = shards.locator();
  for (int i = 0; i < 3; ++i) locator->locate_local({1, 0});
  EXPECT_EQ(shards.store->reads, (std::vector<MemoryStore::Read>{{"a/c/0/0", 136, 64}}));
}

TEST(ChunkLocator, AShardMayAppear) {
  const Shards shards;
  const auto locator = shards.locator();
  EXPECT_EQ(locator->locate_local({2, 0}).place, std::nullopt);
  shards.set("a/c/1/0", {0, 24, 0, 24, 0, 24, 0, 24});
  expect(locator->locate_local({2, 0}), "a/c/1/0", 0, 24);
}

TEST(ChunkLocator, AMissingObjectFromAfarIsAskedForOnce) {
  Shards shards;
  shards.store->local = false;
  const Json bytes = Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});
  const ChunkLocator plain(shards.store, metadata_v3(bytes), nullptr);
  plain.confirm_missing("a/c/1/0", [](std::exception_ptr error) { EXPECT_EQ(error, nullptr); });
  EXPECT_TRUE(plain.locate_local({1, 0}).object_missing);
  EXPECT_TRUE(plain.locate_local({0, 1}).place);
  const auto locator = shards.locator();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(locator->locate_local({2, 0}).object_missing);
  EXPECT_EQ(shards.store->asked["a/c/1/0"], 1);
}

TEST(ChunkLocator, AShardThatGoesIsStaleEvenForChunksThatItDoesNotHave) {
  const Shards shards;
  shards.set("a/c/0/0", {0, 24, 24, 30, 60, 10, kMissing, kMissing});
  const auto locator = shards.locator();
  EXPECT_EQ(locator->locate_local({1, 1}).place, std::nullopt);
  shards.store->objects.clear();
  EXPECT_EQ(
      failure([&] {
        locator->locate_local({1, 1});
      }),
      "the object has gone since it was first read; mount, or run the command, again to see what "
      "is there (a/c/0/0)");
}

TEST(ChunkLocator, AFailureIsNoMissingChunkAndIsNotKept) {
  const Shards shards;
  shards.set("a/c/0/0", {0, 24, 24, 30, 60, 10, kMissing, kMissing});
  const auto locator = shards.locator();
  shards.store->failing = {"a/c/0/0"};
  EXPECT_EQ(failure([&] { locator->locate_local({0, 0}); }), "the disk is on fire (a/c/0/0)");
  shards.store->failing = {};
  expect(locator->locate_local({0, 0}), "a/c/0/0", 0, 24);
}

TEST(ChunkLocator, AnEntryOutsideTheShardIsCorrupt) {
  const Shards shards;
  shards.set("a/c/0/0", {0, 24, 177, 24, 0, UINT64_MAX - 3, 60, 140});
  const auto locator = shards.locator();
  for (const Dims& chunk : {Dims{0, 1}, Dims{1, 0}}) {
    try {
      locator->locate_local(chunk);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
  }
  expect(locator->locate_local({1, 1}), "a/c/0/0", 60, 140);  // up to the shard's end
}

TEST(ChunkLocator, FromAfarAsksForTheIndexOnly) {
  const Shards shards;
  shards.store->local = false;
  shards.set("a/c/0/0", {0, 24, 24, 30, 60, 10, kMissing, kMissing});
  const auto locator = shards.locator();
  ChunkLocator::Location place;
  locator->locate({0, 1}, [&](ChunkLocator::Outcome outcome) { place = std::get<0>(outcome); });
  expect(place, "a/c/0/0", 24, 30);
  EXPECT_EQ(shards.store->reads, (std::vector<MemoryStore::Read>{{"a/c/0/0", 136, 64}}));
}

/// A cache on the way truncates the store's objects, unless the read bypasses it.
class ShortStore final : public MemoryStore {
 public:
  void read_async(const std::string& key, ByteRange, ReadDone done) override {
    done(MemoryStore::read(key, {0, 3}));
  }
  void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                          VersionedDone done) override {
    EXPECT_EQ(known, kNoVersion);
    MemoryStore::read_version_async(key, range, known, std::move(done));
  }
};

TEST(ChunkLocator, AnIndexThatCannotBeRightIsReadPastCaches) {
  Shards shards;
  shards.set("a/c/0/0", {0, 10, kMissing, kMissing, 20, 5, kMissing, kMissing});
  const auto store = std::make_shared<ShortStore>();
  store->objects = shards.store->objects;
  store->local = false;
  const ChunkLocator locator(store, shards.metadata, shards.layout);
  bool is_found = false;
  locator.locate({0, 0}, [&](ChunkLocator::Outcome outcome) {
    is_found = true;
    expect(std::get<ChunkLocator::Location>(outcome), "a/c/0/0", 0, 10);
  });
  EXPECT_TRUE(is_found);
  store->objects["a/c/0/0"].resize(10);
  const ChunkLocator other(store, shards.metadata, shards.layout);
  bool is_corrupt = false;
  other.locate({0, 0}, [&](ChunkLocator::Outcome outcome) {
    is_corrupt = error_of(std::get<std::exception_ptr>(outcome)).code() == ErrorCode::corrupt;
  });
  EXPECT_TRUE(is_corrupt);
}

}  // namespace chunk_locator_test
}  // namespace batchfs

#include "engine/array/array.h"

#include "tests/unit/engine/codec/damage.h"
#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace array_test {

constexpr std::int64_t kRows = 5, kColumns = 7;

/// Element (i, j) of the arrays here is 100 i + j.
std::int32_t value(std::int64_t row, std::int64_t column) {
  return static_cast<std::int32_t>(100 * row + column);
}

constexpr std::int32_t kFill = -9;

/// An array of 5 by 7 in chunks of 2 by 3, written chunk by chunk: `order` and `big` select the
/// layout, `key` names a chunk.
struct Written {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::shared_ptr<const ArrayMetadata> metadata;

  Array array() const { return Array(store, metadata); }
};

Bytes chunk_bytes(std::int64_t row, std::int64_t column, bool transposed, bool big) {
  Bytes bytes;
  for (std::int64_t k = 0; k < 6; ++k) {
    const std::int64_t i = row * 2 + (transposed ? k % 2 : k / 3),
                       j = column * 3 + (transposed ? k / 2 : k % 3);
    // Arbitrary values beyond the array's edge.
    auto bits = static_cast<std::uint32_t>(i < kRows && j < kColumns ? value(i, j) : 0x5a5a5a5a);
    if (big) bits = __builtin_bswap32(bits);
    const auto word = std::as_bytes(std::span(&bits, 1));
    bytes.insert(bytes.end(), word.begin(), word.end());
  }
  return bytes;
}

Written write_v2(const std::string& order, bool big, const std::string& separator) {
  Written written;
  const Json zarray = {{"zarr_format", 2},
                       {"shape", {kRows, kColumns}},
                       {"chunks", {2, 3}},
                       {"dtype", big ? ">i4" : "<i4"},
                       {"compressor", nullptr},
                       {"filters", nullptr},
                       {"fill_value", kFill},
                       {"order", order},
                       {"dimension_separator", separator}};
  written.metadata = std::make_shared<const ArrayMetadata>(
      parse_array_v2("g/a", zarray, Json::object(), "g/a/.zarray"));
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      written.store->set(fmt::format("g/a/{}{}{}", i, separator, j),
                         chunk_bytes(i, j, order == "F", big));
  return written;
}

/// Chunks of 2 by 3 in shards of 4 by 6, the index of each first; `codecs` are the inner chunks'.
Written write_shards(bool big = false) {
  Written written;
  const char* endian = big ? "big" : "little";
  const Json bytes = {{"name", "bytes"}, {"configuration", {{"endian", endian}}}};
  const Json sharding = {
      {"chunk_shape", {2, 3}},
      {"codecs", Json::array({bytes})},
      {"index_location", "start"},
      {"index_codecs",
       Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}})}};
  const Json document = {
      {"zarr_format", 3},
      {"node_type", "array"},
      {"shape", {kRows, kColumns}},
      {"data_type", "int32"},
      {"fill_value", kFill},
      {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", {4, 6}}}}}},
      {"chunk_key_encoding", {{"name", "default"}}},
      {"codecs", Json::array({{{"name", "sharding_indexed"}, {"configuration", sharding}}})}};
  written.metadata =
      std::make_shared<const ArrayMetadata>(parse_array_v3("a", document, "a/zarr.json"));
  for (std::int64_t si = 0; si < 2; ++si)
    for (std::int64_t sj = 0; sj < 2; ++sj) {
      std::vector<std::uint64_t> index;
      Bytes data;
      for (std::int64_t k = 0; k < 4; ++k) {
        const std::int64_t i = 2 * si + k / 2, j = 2 * sj + k % 2;
        if (i > 2 || j > 2) {  // beyond the array
          index.insert(index.end(), {UINT64_MAX, UINT64_MAX});
          continue;
        }
        index.insert(index.end(), {64 + data.size(), 24});
        const Bytes chunk = chunk_bytes(i, j, false, big);
        data.insert(data.end(), chunk.begin(), chunk.end());
      }
      Bytes shard = bytes_of(index);
      shard.insert(shard.end(), data.begin(), data.end());
      written.store->set(fmt::format("a/c/{}/{}", si, sj), shard);
    }
  return written;
}

std::vector<std::int32_t> read(const Array& array, const Box& box) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(box.elements()), 77);
  array.read(box, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<std::int32_t> expected(const Box& box) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < box.shape[0]; ++i)
    for (std::int64_t j = 0; j < box.shape[1]; ++j)
      out.push_back(value(box.start[0] + i, box.start[1] + j));
  return out;
}

/// All boxes of the array.
template <class Body>
void for_each_box(Body&& body) {
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j)
      for (std::int64_t m = 1; i + m <= kRows; ++m)
        for (std::int64_t n = 1; j + n <= kColumns; ++n) body(Box{{i, j}, {m, n}});
}

TEST(Array, EveryBoxOfEveryLayout) {
  for (const char* order : {"C", "F"})
    for (bool big : {false, true})
      for (const char* separator : {".", "/"}) {
        const Written written = write_v2(order, big, separator);
        const Array array = written.array();
        for_each_box([&](const Box& box) { ASSERT_EQ(read(array, box), expected(box)); });
      }
}

TEST(Array, EveryBoxOfShards) {
  for (bool big : {false, true}) {
    const Written written = write_shards(big);
    const Array array = written.array();
    EXPECT_TRUE(array.is_sharded());
    EXPECT_EQ(array.grid().chunk_shape(), (Dims{2, 3}));
    EXPECT_EQ(array.grid().counts(), (Dims{3, 3}));
    for_each_box([&](const Box& box) { ASSERT_EQ(read(array, box), expected(box)); });
  }
}

TEST(Array, ReadsOnlyTheBytesOfAPart) {
  const Written written = write_v2("C", false, ".");
  read(written.array(), {{0, 0}, {1, 2}});
  ASSERT_EQ(written.store->reads.size(), 1u);
  EXPECT_EQ(written.store->reads[0], (MemoryStore::Read{"g/a/0.0", 0, 8}));
  written.store->reads.clear();
  read(written.array(),
       {{2, 4}, {2, 1}});  // column 1 of chunk (1, 1): from its element 1 to its element 4
  EXPECT_EQ(written.store->reads[0], (MemoryStore::Read{"g/a/1.1", 4, 16}));
}

TEST(Array, ReadsTheIndexOfAShardOnceAndOfItsChunksOnlyWhatIsNeeded) {
  const Written written = write_shards();
  const Array array = written.array();
  read(array, {{0, 0}, {4, 6}});
  ASSERT_EQ(written.store->reads.size(), 5u);
  EXPECT_EQ(written.store->reads[0], (MemoryStore::Read{"a/c/0/0", 0, 64}));
  EXPECT_EQ(written.store->reads[1], (MemoryStore::Read{"a/c/0/0", 64, 24}));
  written.store->reads.clear();
  read(array, {{3, 3}, {1, 1}});  // element (1, 0) of the fourth inner chunk
  ASSERT_EQ(written.store->reads.size(), 1u);
  EXPECT_EQ(written.store->reads[0], (MemoryStore::Read{"a/c/0/0", 64 + 3 * 24 + 12, 4}));
}

TEST(Array, MissingChunksAreFillValues) {
  for (bool sharded : {false, true}) {
    const Written written = sharded ? write_shards() : write_v2("C", false, ".");
    written.store->objects.clear();
    for_each_box([&](const Box& box) {
      ASSERT_EQ(read(written.array(), box),
                std::vector<std::int32_t>(static_cast<std::size_t>(box.elements()), kFill));
    });
  }
}

TEST(Array, AFailedReadIsNoMissingChunk) {
  for (bool sharded : {false, true}) {
    const Written written = sharded ? write_shards() : write_v2("C", false, ".");
    written.store->failing = {"g/a/0.0", "a/c/0/0"};
    EXPECT_EQ(failure([&] {
                read(written.array(), {{0, 0}, {1, 1}});
              }),
              sharded ? "the disk is on fire (a/0.0, a/c/0/0)" : "the disk is on fire (g/a/0.0)");
    EXPECT_EQ(failure([&] {
                read(written.array(), {{0, 0}, {2, 3}});
              }),
              sharded ? "the disk is on fire (a/0.0, a/c/0/0)" : "the disk is on fire (g/a/0.0)");
  }
}

TEST(Array, ChunksThatAreTooShortOrTooLongAreRefusedForEveryPart) {
  for (const char* order : {"C", "F"})
    for (bool big : {false, true})
      for (std::size_t size : {0u, 1u, 4u, 8u, 23u, 25u, 48u}) {
        SCOPED_TRACE(fmt::format("{} {} {}", order, big, size));
        const Written written = write_v2(order, big, ".");
        written.store->objects["g/a/1.0"].resize(size);
        const Array array = written.array();
        for (const Box& box :
             {Box{{2, 0}, {2, 3}}, Box{{2, 0}, {1, 1}}, Box{{3, 2}, {1, 1}}, Box{{2, 1}, {2, 1}}}) {
          const std::string message = failure([&] { read(array, box); });
          EXPECT_THAT(message, testing::HasSubstr("(g/a/1.0)")) << message;
          EXPECT_THAT(message, testing::MatchesRegex("the (stored )?chunk has [0-9]+ bytes.*"))
              << message;
        }
      }
}

TEST(Array, StoresFromAfarAreCheckedAsFarAsTheyAreRead) {
  Written written = write_v2("C", true, ".");
  written.store->local = false;
  written.store->objects["g/a/1.0"].resize(8);
  EXPECT_EQ(failure([&] {
              read(written.array(), {{3, 0}, {1, 3}});
            }),
            "the stored chunk has 8 bytes, 24 were expected (g/a/1.0)");
  EXPECT_EQ(failure([&] {
              read(written.array(), {{2, 0}, {2, 3}});
            }),
            "the stored chunk has 8 bytes, 24 were expected (g/a/1.0)");
  written.store->objects["g/a/1.0"].resize(28);  // the bytes to read would exist
  EXPECT_EQ(failure([&] {
              read(written.array(), {{3, 0}, {1, 3}});
            }),
            "the stored chunk has 28 bytes, 24 were expected (g/a/1.0)");
}

TEST(Array, AFileFarLargerThanItsChunkIsNotReadIntoMemory) {
  const Json zarray = {{"zarr_format", 2},
                       {"shape", {4}},
                       {"chunks", {4}},
                       {"dtype", "|u1"},
                       {"compressor", {{"id", "zstd"}}},
                       {"filters", nullptr},
                       {"fill_value", 0},
                       {"order", "C"}};
  const auto store = std::make_shared<MemoryStore>();
  store->set("a/0", Bytes(1 << 20));
  const Array array(store, std::make_shared<const ArrayMetadata>(
                               parse_array_v2("a", zarray, Json::object(), "a")));
  std::byte out[4];
  EXPECT_THAT(failure([&] {
                array.read({{0}, {4}}, out);
              }),
              testing::HasSubstr("decoded it should have 4 (a/0)"));
  EXPECT_LT(store->reads.at(0).bytes, 10000u);
}

TEST(Array, ShardIndexesThatPointElsewhereNameTheChunk) {
  for (const auto& [offset, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {1000, 24}, {64, 1000}, {UINT64_MAX - 4, 24}, {UINT64_MAX, 24}, {64, 23}, {64, 0}}) {
    const Written written = write_shards();
    std::memcpy(written.store->objects["a/c/0/0"].data() + 16, &offset, 8);
    std::memcpy(written.store->objects["a/c/0/0"].data() + 24, &length, 8);
    EXPECT_THAT(failure([&] {
                  read(written.array(), {{0, 3}, {2, 3}});
                }),
                testing::HasSubstr("(a/0.1)"));
    EXPECT_THAT(failure([&] {
                  read(written.array(), {{1, 4}, {1, 1}});
                }),
                testing::HasSubstr("(a/0.1)"));
    EXPECT_EQ(read(written.array(), {{0, 0}, {2, 3}}), expected({{0, 0}, {2, 3}}));
  }
}

TEST(Array, AShardTooShortForItsIndexNamesTheChunk) {
  const Written written = write_shards();
  written.store->objects["a/c/1/0"].resize(63);
  EXPECT_EQ(failure([&] {
              read(written.array(), {{4, 0}, {1, 1}});
            }),
            "the shard has 63 bytes, its index alone needs 64 (a/2.0)");
}

TEST(Array, AShardThatGoesAwayIsNoMissingChunk) {
  const Written written = write_shards();
  const Array array = written.array();
  read(array, {{0, 0}, {1, 1}});
  written.store->objects.erase("a/c/0/0");
  EXPECT_EQ(failure([&] {
              read(array, {{0, 0}, {1, 1}});
            }),
            "the shard has gone while it was read (a/0.0)");
}

TEST(Array, WithoutDimensionsAndWithoutElements) {
  const auto store = std::make_shared<MemoryStore>();
  auto array = [&](const Json& shape) {
    const Json zarray = {{"zarr_format", 2},
                         {"shape", shape},
                         {"chunks", shape.empty() ? shape : Json::array({1, 1})},
                         {"dtype", "<i4"},
                         {"compressor", nullptr},
                         {"filters", nullptr},
                         {"fill_value", 5},
                         {"order", "C"}};
    return Array(store, std::make_shared<const ArrayMetadata>(
                            parse_array_v2("", zarray, Json::object(), "t")));
  };
  const Array scalar = array(Json::array());
  EXPECT_EQ(scalar.chunk_name({}), "0");
  EXPECT_EQ(read(scalar, {{}, {}}), std::vector<std::int32_t>{5});
  store->set("0", hex("07000000"));
  EXPECT_EQ(read(scalar, {{}, {}}), std::vector<std::int32_t>{7});
  const Array empty = array(Json::array({0, 3}));
  EXPECT_EQ(empty.grid().chunk_count(), 0);
  EXPECT_EQ(read(empty, {{0, 0}, {0, 3}}), std::vector<std::int32_t>{});
}

TEST(Array, WritesPartsAtAnyStrides) {
  const Written written = write_v2("C", true, ".");
  const Array array = written.array();
  std::vector<std::int32_t> out(40, 77);
  Array::Loaded loaded;
  // The last two columns of chunk (0, 1), transposed and ten elements apart.
  array.load({0, 1}, {{0, 1}, {2, 2}}, reinterpret_cast<std::byte*>(out.data()), {4, 40}, &loaded);
  EXPECT_EQ(out[0], value(0, 4));
  EXPECT_EQ(out[1], value(1, 4));
  EXPECT_EQ(out[2], 77);
  EXPECT_EQ(out[10], value(0, 5));
  EXPECT_EQ(out[11], value(1, 5));
  EXPECT_EQ(loaded.fetched, 20u);  // from element 1 to element 5
}

TEST(Array, KnowsWhatDecodesDirectly) {
  const Array plain = write_v2("C", false, ".").array();
  EXPECT_TRUE(plain.decodes_directly({{0, 0}, {2, 3}}, {12, 4}));
  EXPECT_TRUE(plain.decodes_directly({{1, 0}, {1, 2}}, {100, 4}));
  EXPECT_FALSE(plain.decodes_directly({{0, 0}, {2, 2}}, {8, 4}));
  EXPECT_FALSE(plain.decodes_directly({{0, 0}, {2, 3}}, {16, 4}));
  const Array transposed = write_v2("F", false, ".").array();
  EXPECT_TRUE(transposed.decodes_directly({{0, 0}, {2, 3}}, {12, 4}));
  EXPECT_FALSE(transposed.decodes_directly({{1, 0}, {1, 2}}, {100, 4}));
}

TEST(Array, NamesChunks) {
  EXPECT_EQ(write_v2("C", false, "/").array().chunk_name({2, 0}), "g/a/2.0");
  EXPECT_EQ(write_shards().array().chunk_name({0, 10}), "a/0.10");
}

TEST(Array, RefusesByNameWhatItCannotRead) {
  auto refusal = [](const Json& change) {
    Json zarray = {{"zarr_format", 2}, {"shape", {4}},          {"chunks", {4}},
                   {"dtype", "<f8"},   {"compressor", nullptr}, {"filters", nullptr},
                   {"fill_value", 0},  {"order", "C"}};
    zarray.update(change);
    const auto metadata =
        std::make_shared<const ArrayMetadata>(parse_array_v2("a", zarray, Json::object(), "t"));
    return failure([&] { Array(std::make_shared<MemoryStore>(), metadata); });
  };
  EXPECT_EQ(refusal({{"compressor", {{"id", "other"}}}}), "the codec 'other' is not supported (a)");
  EXPECT_EQ(refusal({{"dtype", "<f16"}}), "dtype: the data type '<f16' is not supported (a)");
  EXPECT_EQ(refusal({{"filters", Json::array({{{"id", "other"}}})}, {"dtype", "|O"}}),
            "dtype: object arrays coded by 'other' are not supported (a)");
  EXPECT_EQ(refusal({{"filters", Json::array({{{"id", "delta"}, {"dtype", "<U3"}}})}}),
            "delta.dtype: filters of the data type <U3 are not supported (a)");
}

}  // namespace array_test
}  // namespace batchfs

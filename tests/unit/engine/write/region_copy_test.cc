// Objects are compared with those of zarr-python 3 for the same values.
#include "engine/write/region_copy.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/codec/crc32c.h"
#include "tests/unit/engine/store/memory_store.h"
#include "tests/unit/engine/store/temporary_directory.h"

namespace batchfs {
namespace region_copy_test {

ArrayMetadata v2_array(const char* dtype, const Dims& shape, const Dims& chunks, Json fill) {
  const auto list = [](const Dims& dims) {
    return std::vector<std::int64_t>(dims.begin(), dims.end());
  };
  return parse_array_v2("t",
                        {{"zarr_format", 2},
                         {"shape", list(shape)},
                         {"chunks", list(chunks)},
                         {"dtype", dtype},
                         {"compressor", nullptr},
                         {"fill_value", std::move(fill)},
                         {"order", "C"},
                         {"filters", nullptr}},
                        Json::object(), "t/.zarray");
}

template <class T>
std::vector<T> numbers_from(T first, std::size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class RegionCopyTest : public testing::Test {
 protected:
  /// Writes a region with the given values; the objects' items in any order.
  template <class T>
  void write(const OutputArray& array, const Box& region, const std::vector<T>& values) {
    ObjectWriter writer(array, *output_, region);
    for (std::size_t i = writer.items(); i-- > 0;)
      writer.write(i, reinterpret_cast<const std::byte*>(values.data()));
    put_ += writer.objects_put();
    stored_ += writer.stored_bytes();
  }
  template <class T>
  std::vector<T> object(const std::string& key) const {
    std::ifstream in(folder_ / ("o/" + key), std::ios::binary);
    EXPECT_TRUE(in) << key;
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  bool has(const std::string& key) const { return std::filesystem::exists(folder_ / ("o/" + key)); }

  const TemporaryDirectory folder_;
  const std::shared_ptr<OutputStore> output_ = open_local_output(folder_ / "o");
  std::uint64_t put_ = 0, stored_ = 0;
};

TEST_F(RegionCopyTest, ChunksAreWholeAndFilledBeyondTheArraysEnd) {
  const ArrayMetadata source = v2_array("<i2", {3, 5}, {3, 5}, -1);
  const OutputArray array =
      make_output_array(source, "t", 3, {{2, 4}, {2, 4}}, parse_compression("none"));
  write(array, {{0, 0}, {3, 5}}, numbers_from<std::int16_t>(0, 15));
  using Values = std::vector<std::int16_t>;
  EXPECT_EQ(object<std::int16_t>("t/c/0/0"), (Values{0, 1, 2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(object<std::int16_t>("t/c/0/1"), (Values{4, -1, -1, -1, 9, -1, -1, -1}));
  EXPECT_EQ(object<std::int16_t>("t/c/1/0"), (Values{10, 11, 12, 13, -1, -1, -1, -1}));
  EXPECT_EQ(object<std::int16_t>("t/c/1/1"), (Values{14, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(put_, 4u);
  EXPECT_EQ(stored_, 4u * 16);
}

TEST_F(RegionCopyTest, ARegionInTheMiddleWritesItsOwnObjects) {
  const ArrayMetadata source = v2_array("<i2", {6, 4}, {2, 4}, 0);
  const OutputArray array =
      make_output_array(source, "t", 2, {{2, 2}, {2, 2}}, parse_compression("none"));
  write(array, {{2, 0}, {2, 4}}, numbers_from<std::int16_t>(8, 8));
  EXPECT_EQ(object<std::int16_t>("t/1.0"), (std::vector<std::int16_t>{8, 9, 12, 13}));
  EXPECT_EQ(object<std::int16_t>("t/1.1"), (std::vector<std::int16_t>{10, 11, 14, 15}));
  EXPECT_FALSE(has("t/0.0"));
}

TEST_F(RegionCopyTest, ValuesAreSwappedForBigEndianArrays) {
  const ArrayMetadata source = v2_array(">i2", {2}, {2}, 0);
  const OutputArray array =
      make_output_array(source, "t", 2, {{2}, {2}}, parse_compression("none"));
  write(array, {{0}, {2}}, std::vector<std::int16_t>{1, 0x0203});
  EXPECT_EQ(object<std::uint8_t>("t/0"), (std::vector<std::uint8_t>{0, 1, 2, 3}));
}

TEST_F(RegionCopyTest, ChunksOfTheFillValueAreLeftOut) {
  const ArrayMetadata source = v2_array("<i2", {2, 4}, {2, 4}, 7);
  const OutputArray array =
      make_output_array(source, "t", 3, {{1, 2}, {1, 2}}, parse_compression("none"));
  write(array, {{0, 0}, {2, 4}}, std::vector<std::int16_t>{7, 7, 7, 8, 7, 7, 7, 7});
  EXPECT_FALSE(has("t/c/0/0"));
  EXPECT_TRUE(has("t/c/0/1"));
  EXPECT_FALSE(has("t/c/1/0") || has("t/c/1/1"));
  EXPECT_EQ(put_, 1u);
}

TEST_F(RegionCopyTest, AShardHasAnIndexWithAChecksum) {
  const ArrayMetadata source = v2_array("<i2", {3, 4}, {3, 4}, -1);
  const OutputArray array =
      make_output_array(source, "t", 3, {{1, 2}, {2, 4}, true}, parse_compression("none"));
  write(array, {{0, 0}, {3, 4}}, numbers_from<std::int16_t>(0, 12));
  // Chunks in C order; zarr-python's own are in Morton order, and each index holds their places.
  struct Entry {
    std::uint64_t offset, size;
  };
  const auto bytes = object<std::byte>("t/c/0/0");
  ASSERT_EQ(bytes.size(), 16u + 4 * sizeof(Entry) + 4);
  const std::int16_t expected[4][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  for (std::size_t i = 0; i < 4; ++i) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + 16 + i * sizeof entry, sizeof entry);
    ASSERT_EQ(entry.size, 4u);
    EXPECT_EQ(std::memcmp(bytes.data() + entry.offset, expected[i], 4), 0) << i;
  }
  std::uint32_t checksum;
  std::memcpy(&checksum, bytes.data() + bytes.size() - 4, 4);
  EXPECT_EQ(checksum, crc32c({bytes.data() + 16, 4 * sizeof(Entry)}));
  // The whole second shard as zarr-python puts it: its last row lies beyond the array.
  const char second[] =
      "\x08\0\x09\0\x0a\0\x0b\0"
      "\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff#W\x92\x90";
  const auto last = object<char>("t/c/1/0");
  EXPECT_EQ(std::string(last.data(), last.size()), std::string(second, sizeof second - 1));
}

TEST_F(RegionCopyTest, ChunksAreReadToTheirPlaceInARegion) {
  const auto store = std::make_shared<MemoryStore>();
  const auto put = [&](const std::string& key, const std::vector<std::int16_t>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    store->set(key, std::vector<std::byte>(bytes.begin(), bytes.end()));
  };
  put("t/0.0", {0, 1, 10, 11});
  put("t/0.1", {2, 99, 12, 99});
  put("t/1.1", {22, 99, 99, 99});  // 1.0 is missing
  const auto metadata = std::make_shared<const ArrayMetadata>(v2_array("<i2", {3, 3}, {2, 2}, -5));
  for (const bool local : {true, false}) {
    store->local = local;
    const Array array(store, metadata);
    const ChunkReader reader(array, {{0, 0}, {3, 3}});
    std::vector<std::int16_t> values(9, 1000);
    for (std::size_t i = 0; i < reader.items(); ++i)
      reader.read(i, reinterpret_cast<std::byte*>(values.data()));
    EXPECT_EQ(values, (std::vector<std::int16_t>{0, 1, 2, 10, 11, 12, -5, -5, 22})) << local;
  }
}

}  // namespace region_copy_test
}  // namespace batchfs

#include "engine/scan/stored_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/store/memory_store.h"

namespace batchfs {
namespace stored_objects_test {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Style = ChunkKeyEncoding::Style;

ArrayMetadata array(const std::string& path, Dims shape, Dims chunks, Style style, char separator) {
  ArrayMetadata metadata;
  metadata.path = path;
  metadata.shape = shape;
  metadata.chunk_shape = chunks;
  metadata.key_encoding = {style, separator};
  return metadata;
}

TEST(StoredObjects, KeysAreChunksOrNot) {
  const auto nested = array("a", {9, 9}, {1, 1}, Style::v3_default, '/');
  EXPECT_EQ(chunk_of_key(nested, "c/1/20"), (Dims{1, 20}));
  for (const char* wrong : {"1/20", "c/1", "c/1/2/3", "c/01/2", "c/1/x", "c/1/2.part", "c.1.2", "",
                            "c/-1/2", "c//1/2", "c/1/99999999999999999999"})
    EXPECT_EQ(chunk_of_key(nested, wrong), std::nullopt) << wrong;
  const auto flat = array("a", {9, 9}, {1, 1}, Style::v2, '.');
  EXPECT_EQ(chunk_of_key(flat, "3.0"), (Dims{3, 0}));
  ArrayMetadata member = flat;
  member.shape = {1, flat.shape[0], flat.shape[1]};
  member.key_encoding.leading = 1;
  EXPECT_EQ(chunk_of_key(member, "3.0"), (Dims{0, 3, 0}));
  EXPECT_EQ(chunk_of_key(flat, "3/0"), std::nullopt);
  EXPECT_EQ(chunk_of_key(array("", {}, {}, Style::v2, '.'), "0"), Dims{});
  EXPECT_EQ(chunk_of_key(array("", {}, {}, Style::v3_default, '/'), "c"), Dims{});
  EXPECT_EQ(chunk_of_key(array("", {}, {}, Style::v3_default, '/'), "0"), std::nullopt);
}

TEST(StoredObjects, AListingGivesChunksAndNotes) {
  MemoryStore store;
  for (const char* key : {"a/zarr.json", "a/c/0/0", "a/c/1/1", "a/c/2/0", "a/c/1/deep/er", "a/c/x",
                          "a/other/y", "b/c/0/0"})
    store.set(key, "x");
  const auto metadata = array("a", {4, 4}, {2, 2}, Style::v3_default, '/');
  std::vector<std::string> found, notes;
  list_objects(
      store, metadata, ChunkGrid(metadata.shape, metadata.chunk_shape),
      [&](const Dims& chunk, const std::string& key) {
        EXPECT_EQ(object_key(metadata, chunk), key);
        found.push_back(key);
        return true;
      },
      [&](const std::string& key, const std::string&) { notes.push_back(key); });
  EXPECT_THAT(found, UnorderedElementsAre("a/c/0/0", "a/c/1/1"));
  EXPECT_THAT(notes, UnorderedElementsAre("a/c/2/0", "a/c/1/deep", "a/c/x", "a/other/y"));
}

TEST(StoredObjects, SelectedChunksAreRowMajor) {
  const ChunkGrid grid({6, 6}, {2, 2});
  const ChunkSelection selection = {std::vector<std::int64_t>{0, 2}, std::nullopt};
  std::vector<std::int64_t> numbers;
  for_each_selected(grid, selection, [&](const Dims& chunk) {
    EXPECT_TRUE(is_selected(selection, chunk));
    numbers.push_back(grid.linear(chunk));
    return numbers.size() < 5;
  });
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 6, 7));
  EXPECT_EQ(count_selected(grid, selection), 6u);
  EXPECT_FALSE(is_selected(selection, Dims{1, 0}));
  int count = 0;
  for_each_selected(ChunkGrid({}, {}), {}, [&](const Dims&) { return ++count > 0; });
  EXPECT_EQ(count, 1);
  for_each_selected(ChunkGrid({0}, {2}), ChunkSelection(1),
                    [&](const Dims&) { return ++count > 0; });
  EXPECT_EQ(count, 1);
}

}  // namespace stored_objects_test
}  // namespace batchfs

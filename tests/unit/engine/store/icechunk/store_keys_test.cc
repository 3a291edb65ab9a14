#include "engine/store/icechunk/store_keys.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace store_keys_test {

using icechunk::chunk_name;
using icechunk::document_path;

TEST(StoreKeys, DocumentsHaveThePathOfTheirNode) {
  EXPECT_EQ(document_path("zarr.json"), "");
  EXPECT_EQ(document_path("a/zarr.json"), "a");
  EXPECT_EQ(document_path("a/b/zarr.json"), "a/b");
  for (const char* other : {"", "a", "a/b", "xzarr.json", "a/xzarr.json", "zarr.json/x", ".zarray"})
    EXPECT_FALSE(document_path(other)) << other;
}

TEST(StoreKeys, ChunksHaveThePathOfTheirArray) {
  const auto name = chunk_name("a/b/c/0/11");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->path, "a/b");
  EXPECT_EQ(name->index, (std::vector<std::uint32_t>{0, 11}));
  EXPECT_EQ(chunk_name("c/7")->path, "");
  EXPECT_TRUE(chunk_name("a/c")->index.empty()) << "a scalar, or the folder of all chunks";
  EXPECT_EQ(chunk_name("a/c/c/1")->path, "a/c");
  EXPECT_EQ(chunk_name("c/4294967295")->index.front(), UINT32_MAX);
  for (const char* other :
       {"", "a", "a/0", "a/0.1", "a/c/x", "a/c/-1", "a/c/0/", "a/c/01x", "a/c/4294967296", "0/1"})
    EXPECT_FALSE(chunk_name(other)) << other;
}

}  // namespace store_keys_test

}  // namespace batchfs

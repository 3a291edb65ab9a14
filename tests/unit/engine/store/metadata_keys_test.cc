#include "engine/store/metadata_keys.h"

#include <gtest/gtest.h>

namespace batchfs {

namespace metadata_keys_test {

TEST(MetadataKeys, AreZarrsFileNames) {
  for (const char* key : {"zarr.json", "a/b/zarr.json", ".zmetadata", "a/.zarray", ".zgroup"}) {
    EXPECT_TRUE(is_metadata_key(key)) << key;
    EXPECT_TRUE(is_rewritten_key(key)) << key;
  }
  for (const char* key : {"a/c/0/0", "0.0", "zarr.json/0", "azarr.json/c"})
    EXPECT_FALSE(is_metadata_key(key) || is_rewritten_key(key)) << key;
}

TEST(MetadataKeys, ReferencesAndBranchesAreRewritten) {
  for (const char* key : {"refs/branch.main/ref.json", "repo", "set.json"})
    EXPECT_TRUE(is_rewritten_key(key)) << key;
  EXPECT_FALSE(is_rewritten_key("manifests/ABC"));
  for (const char* key : {"repo", "refs/branch.main/ref.json", "refs/tag.a/ref.json"})
    EXPECT_TRUE(is_repository_key(key)) << key;
  for (const char* key : {"a/repo", "set.json", "refs/x", "zarr.json"})
    EXPECT_FALSE(is_repository_key(key)) << key;
}

}  // namespace metadata_keys_test

}  // namespace batchfs

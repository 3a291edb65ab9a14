#include "engine/zarr/metadata_memory.h"

#include <gtest/gtest.h>

namespace batchfs {
namespace metadata_memory_test {

TEST(MetadataMemory, IsClaimedUpToItsLimit) {
  MetadataMemory memory(100);
  memory.claim(60);
  EXPECT_EQ(memory.left(), 40u);
  try {
    memory.claim(41);
    ADD_FAILURE() << "was granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
  }
  EXPECT_EQ(memory.left(), 0u);
}

TEST(MetadataMemory, APassingClaimEnds) {
  MetadataMemory memory(100);
  {
    Passing passing(memory, 80);
    EXPECT_EQ(memory.used(), 80u);
    passing.shrink(30);
    EXPECT_EQ(memory.used(), 50u);
    passing.shrink(UINT64_MAX);
    EXPECT_EQ(memory.used(), 0u);
    memory.claim(10);
  }
  EXPECT_EQ(memory.used(), 10u);
}

}  // namespace metadata_memory_test
}  // namespace batchfs

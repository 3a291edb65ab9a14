#include "engine/store/references/parquet_runs.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace parquet_runs_test {

using references::ParquetRuns;
using testing::ElementsAre;

std::vector<std::uint32_t> values(std::vector<int> bytes, int width, int count) {
  std::vector<std::byte> stored;
  for (const int byte : bytes) stored.push_back(static_cast<std::byte>(byte));
  ParquetRuns runs(stored, width);
  std::vector<std::uint32_t> found;
  for (int i = 0; i < count; ++i) found.push_back(runs.next());
  return found;
}

TEST(ParquetRuns, GiveRunsAndPackedBits) {
  EXPECT_THAT(values({6, 1, 4, 0}, 1, 5), ElementsAre(1, 1, 1, 0, 0));
  // The example of Parquet's specification: 0 to 7 in three bits.
  EXPECT_THAT(values({3, 0x88, 0xc6, 0xfa}, 3, 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(values({2, 1, 2, 3, 4}, 32, 1), ElementsAre(0x04030201u));
  EXPECT_THAT(values({3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 9, 0, 0, 0}, 32, 2),
              ElementsAre(0xff000000u, 0x09ffffffu));
  EXPECT_THAT(values({20}, 0, 10), testing::Each(0u));
  EXPECT_THAT(values({0, 9, 2, 5}, 8, 1), ElementsAre(5));
}

TEST(ParquetRuns, EndWhereTheBytesEnd) {
  EXPECT_THROW(values({}, 1, 1), Error);
  EXPECT_THROW(values({2}, 1, 1), Error);
  EXPECT_THROW(values({2, 1}, 1, 2), Error);
  EXPECT_THROW(values({3, 0x88}, 3, 8), Error);
  EXPECT_THROW(values({0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1, 1), Error);
  EXPECT_THROW(values({2, 0}, 33, 1), Error);
}

}  // namespace parquet_runs_test
}  // namespace batchfs

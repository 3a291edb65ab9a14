#include "fs/formats.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace {

TEST(BatchMemory, IsThatOfTheLargestFormat) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "x"}, {7, 3}, {1, 3}).declare("b", "<i2", {"t"}, {7}, {7});
  const MemoryFiles files(false);  // a file takes its size
  const auto zarr = parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4, "formats": ["zarr"]})");
  EXPECT_EQ(batch_memory(*zarr, files), 4u * 3 * 4 + 4 * 2);
  const auto both = parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4, "formats": ["zarr", "npy"]})");
  EXPECT_EQ(batch_memory(*both, files), 4096u + 4 * 3 * 4 + 4096 + 4 * 2);
}

}  // namespace
}  // namespace batchfs

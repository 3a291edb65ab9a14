#include "fs/formats/formats.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace formats_test {

TEST(BatchMemory, IsThatOfTheLargestFormat) {
  MemoryData data;
  data.declare("a", "<f4", {"t", "x"}, {7, 3}, {1, 3}).declare("b", "<i2", {"t"}, {7}, {7});
  const MemoryFiles files(false);  // a file takes its size
  const auto zarr =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4, "formats": ["zarr"]})");
  EXPECT_EQ(batch_memory(*zarr, files), 4u * 3 * 4 + 4 * 2);
  const auto both =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4, "formats": ["zarr", "npy"]})");
  EXPECT_EQ(batch_memory(*both, files), 4096u + 4 * 3 * 4 + 4096 + 4 * 2);
  const auto seen =
      parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4, "formats": ["png"]})");
  EXPECT_GT(batch_memory(*seen, files),
            4u * 3 * 4 + 4 * 2);  // the picture, and the tensors that it is of
}

TEST(FormatNamed, IsTheFormatOfAView) {
  for (const char* name : {"npy", "safetensors", "npz", "png"})
    EXPECT_EQ(format_named(name).name(), name);
  EXPECT_EQ(&format_named("zarr"), &raw_format());
}

}  // namespace formats_test
}  // namespace batchfs

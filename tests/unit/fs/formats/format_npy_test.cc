#include <gtest/gtest.h>

#include "fs/formats/formats.h"
#include "tests/unit/engine/view/assembled.h"
#include "tests/unit/fs/mounted.h"

namespace batchfs {
namespace format_npy_test {

std::shared_ptr<const View> two_tensors() {
  MemoryData data;
  data.declare("a", "<f4", {"t", "x"}, {7, 3}, {1, 3}).declare("b", "<i2", {"t"}, {7}, {7});
  return parse_view(data.dataset(), R"({"window": {"t": 1}, "batch": 4})");
}

TEST(NpyFormat, IsOneFilePerTensor) {
  const auto view = two_tensors();
  EXPECT_EQ(npy_format().name(), "npy");
  const BatchLayout layout = npy_format().layout(*view, 0);
  ASSERT_EQ(layout.files.size(), 2u);
  EXPECT_EQ(layout.files[0].size, 4096u + 4 * 1 * 3 * 4);
  EXPECT_EQ(layout.files[1].size, 4096u + 4 * 1 * 2);
  for (std::uint32_t t = 0; t < 2; ++t) {
    EXPECT_EQ(layout.tensors[t].file, t);
    EXPECT_EQ(layout.tensors[t].offset, 4096u);
    ASSERT_EQ(layout.files[t].literals.size(), 1u);
    EXPECT_EQ(layout.files[t].literals[0].offset, 0u);
  }
  EXPECT_EQ(parse_npy(layout.files[0].literals[0].bytes).header,
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1, 3), }");
  EXPECT_FALSE(layout.finish);
}

TEST(NpyFormat, AShortBatchHasItsOwnShape) {
  const BatchLayout layout = npy_format().layout(*two_tensors(), 1);
  EXPECT_EQ(layout.files[1].size, 4096u + 3 * 1 * 2);
  EXPECT_EQ(parse_npy(layout.files[1].literals[0].bytes).header,
            "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 1), }");
}

TEST(RawFormat, IsTheBytesAlone) {
  EXPECT_EQ(raw_format().name(), "raw");
  const BatchLayout layout = raw_format().layout(*two_tensors(), 0);
  ASSERT_EQ(layout.files.size(), 2u);
  EXPECT_EQ(layout.files[0].size, 48u);
  EXPECT_TRUE(layout.files[0].literals.empty());
  EXPECT_EQ(layout.tensors[1].offset, 0u);
}

}  // namespace format_npy_test
}  // namespace batchfs

#include "gpu/handoff/packed_format.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/pipeline/fake_store.h"

namespace batchfs::handoff {
namespace packed_format_test {

TEST(PackedFormat, EachTensorBeginsAPage) {
  FakeData data(10, 4, 6);
  const auto view = data.view(
      R"({"window": {"time": 1}, "batch": 4, "tensors": {"a": {"variables": ["v"]}, "b": {"variables": ["v"]},
    "c": {"variables": ["v"]}}})");
  const BatchLayout layout = packed_format().layout(*view, 0);
  ASSERT_EQ(layout.files.size(), 1u);
  ASSERT_EQ(layout.tensors.size(), 3u);
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(layout.tensors[t].offset, 4096 * t);
  EXPECT_EQ(layout.files[0].size, 2 * 4096u + 96);
}

}  // namespace packed_format_test
}  // namespace batchfs::handoff

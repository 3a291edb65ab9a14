#include "gpu/handoff/packed_format.h"

#include <cstring>

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

TEST(PackedFormat, ManyWindowsHaveAFile) {
  FakeData data(4100, 4, 1);
  const auto view =
      data.view(R"({"window": {"time": 1}, "batch": {"size": 4000, "remainder": "keep"}})");
  const BatchLayout layout = packed_format().layout(*view, view->batches() - 1);
  ASSERT_EQ(layout.files.size(), 1u) << "the last batch is small";
  const BatchLayout first = packed_format().layout(*view, 0);
  ASSERT_EQ(first.files.size(), 2u);
  ASSERT_EQ(first.files[1].size, 64000u);
  std::vector<MemoryFile> files;
  for (const BatchLayout::File& file : first.files)
    files.push_back(MemoryFiles(false).create("packed", file.size));
  first.finish(files, 0);
  const std::vector<std::int64_t> expected = view->batch_windows(0, 0);
  EXPECT_EQ(std::memcmp(files[1].data(), expected.data(), 64000), 0);
}

}  // namespace packed_format_test
}  // namespace batchfs::handoff

// Parts of a stream that need no device.

#include "gpu/stream/batch_stream.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/dataset/memory_data.h"

namespace batchfs::gpu {
namespace batch_stream_test {

constexpr std::uint64_t kMiB = 1 << 20;

std::shared_ptr<const View> view_of(std::int64_t ny, std::int64_t nx) {
  MemoryData data;
  data.declare("a", "<f4", {"time", "y", "x"}, {20, ny, nx}, {1, ny, nx});
  return View::parse(data.dataset(), R"({"window": {"time": 1}, "batch": 8})", "v", "test");
}

TEST(DeviceLayout, SharesOutWhatThereIs) {
  const auto view = view_of(1000, 1000);
  const DeviceLayout layout = device_layout(*view, 4096 * kMiB, 3);
  EXPECT_EQ(layout.part, 64 * kMiB);
  EXPECT_EQ(layout.slot_bytes, 32'000'000u);
  EXPECT_EQ(layout.sizes.batch, 96'000'000u);
  const std::uint64_t lane = layout.sizes.source + layout.sizes.planes + layout.sizes.literals +
                             8 * layout.sizes.runs + 4 * layout.sizes.run_index;
  EXPECT_LE(
      layout.sizes.batch + layout.sizes.target + static_cast<std::uint64_t>(layout.lanes) * lane,
      4096 * kMiB);
  EXPECT_GT(layout.sizes.target, 2048 * kMiB);
}

TEST(DeviceLayout, LittleMemoryMakesSmallerProgramsUntilItIsTooLittle) {
  const auto view = view_of(1000, 1000);
  const DeviceLayout layout = device_layout(*view, 500 * kMiB, 2);
  EXPECT_LT(layout.part, 64 * kMiB);
  EXPECT_GE(layout.part, 4'000'000u);
  try {
    device_layout(*view, 100 * kMiB, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_memory);
    EXPECT_NE(std::string(error.what()).find("give it"), std::string::npos);
  }
}

TEST(Slots, AreAsManyAsLeaveRoomForDecodedChunks) {
  const auto view = view_of(4000, 4000);  // batches of 512 MB
  const SlotNumbers numbers{.most = 5, .usual = 3, .least = 2};
  EXPECT_EQ(slots_within(*view, 20'000 * kMiB, numbers), 5u);
  EXPECT_EQ(slots_within(*view, 6'000 * kMiB, numbers), 4u);
  EXPECT_GE(device_layout(*view, 6'000 * kMiB, 4).sizes.target, std::uint64_t{4} * 512'000'000);
  EXPECT_EQ(slots_within(*view, 5'000 * kMiB, numbers), 3u);
  EXPECT_NO_THROW(device_layout(*view, 5'000 * kMiB, 5));  // five would fit
  EXPECT_EQ(slots_within(*view, 1'400 * kMiB, numbers), 2u);
  EXPECT_EQ(slots_within(*view, 10 * kMiB, numbers), 2u);  // none do
}

TEST(TensorOffsets, AreAligned) {
  const auto view = view_of(3, 5);
  const auto offsets = tensor_offsets(*view, view->shapes(0));
  ASSERT_EQ(offsets.size(), 2u);
  EXPECT_EQ(offsets[0], 0u);
  EXPECT_EQ(offsets[1], 512u);  // 480 bytes
}

}  // namespace batch_stream_test
}  // namespace batchfs::gpu

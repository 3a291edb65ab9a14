// The device's interface on a machine without a GPU, or in a build without CUDA: reports that there
// is no device, and why. It never pretends, and never crashes.

#include <functional>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "gpu/stream/cuda_devices.h"
#include "gpu/stream/device_runner.h"
#include "gpu/stream/slot_memory.h"

namespace batchfs::gpu {
namespace without_cuda_test {

class WithoutCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() > 0) GTEST_SKIP() << "there is a GPU";
  }
  static void expect_refused(const std::function<void()>& use) {
    try {
      use();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      if (why_no_device().find("built without CUDA") == std::string::npos)
        return;  // the driver's own message
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
      EXPECT_NE(std::string(error.what()).find(why_no_device()), std::string::npos) << error.what();
    }
  }
};

TEST_F(WithoutCuda, SaysWhy) { EXPECT_FALSE(why_no_device().empty()); }

TEST_F(WithoutCuda, DevicesAreNotThere) {
  expect_refused([] { device_name(0); });
  expect_refused([] { free_device_memory(0); });
  expect_refused([] { total_device_memory(0); });
  expect_refused([] { device_uuid(0); });
  expect_refused([] { why_no_kernel_for(0); });
}

TEST_F(WithoutCuda, NothingOfTheirsIsMade) {
  std::vector<std::byte> memory(4096);
  expect_refused([] { PinnedBuffer buffer(4096); });
  expect_refused([&] { PinnedMapping mapping(memory.data(), memory.size()); });
  expect_refused(
      [&] { DeviceRunner runner({.staging = memory.data(), .batch = memory.data()}, {}, {}); });
  expect_refused([] { SlotMemory slots(0, 4096); });
  expect_refused([] { SlotMemory::import_fd(0, -1, 4096); });
}

}  // namespace without_cuda_test
}  // namespace batchfs::gpu

#include <gtest/gtest.h>

#include "gpu/stream/cuda_devices.h"
#include "tools/doctor/checks.h"

namespace batchfs {
namespace check_handoff_test {

TEST(CheckHandoff, EveryModeIsToldAndTheHostsAlwaysWorks) {
  const Checks checks = check_handoff();
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_EQ(checks[0].topic, "hand-off, mode server");
  EXPECT_EQ(checks[1].topic, "hand-off, mode client");
  EXPECT_EQ(checks[2].topic, "hand-off, mode shm");
  EXPECT_EQ(checks[2].state, Check::State::ok);
}

TEST(CheckHandoff, WithoutAGpuItSaysWhyBatchesAreNotOnOne) {
  const std::string why = gpu::why_no_device();
  if (why.empty()) GTEST_SKIP() << "there is a GPU";
  const Checks checks = check_handoff();
  for (std::size_t mode = 0; mode < 2; ++mode) {
    EXPECT_EQ(checks[mode].state, Check::State::note);
    EXPECT_EQ(checks[mode].found, "not here: " + why);
  }
}

TEST(CheckHandoff, WithAGpuItsMemoryCanBeHandedOn) {
  if (!gpu::why_no_device().empty()) GTEST_SKIP() << "there is no GPU";
  EXPECT_EQ(check_handoff()[0].state, Check::State::ok) << check_handoff()[0].found;
}

}  // namespace check_handoff_test
}  // namespace batchfs

#include "gpu/handoff/batch_slots.h"

#include <gmock/gmock.h>

#include "gpu/stream/cuda_devices.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace batch_slots_test {

TEST(BatchSlots, WithoutAGpuItIsRefusedByName) {
  if (gpu::device_count() > 0) GTEST_SKIP() << "there is a GPU";
  FakeData data(10, 4, 6);
  Log log;
  Engine engine({.threads = 1, .memory = 64 << 20}, log);
  const auto view = data.view(R"({"window": {"time": 1}, "batch": 1})");
  for (const std::uint64_t memory : {UINT64_C(0), UINT64_C(1) << 30, UINT64_MAX}) {
    try {
      batch_slots(engine, 0, {view, nullptr, 0, 0}, memory);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_supported) << "too little memory is another reason";
      EXPECT_THAT(error.what(), testing::HasSubstr(gpu::why_no_device()));
    }
  }
  EXPECT_EQ(engine.counters().batches_assembled.load(), 0u);
}

}  // namespace batch_slots_test
}  // namespace batchfs::handoff

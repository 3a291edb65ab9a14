#include "engine/base/buffer.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace batchfs {
namespace {

TEST(Buffer, IsAlignedOwnedAndTruncates) {
  Buffer a(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
  a.truncate(10);
  EXPECT_EQ(a.span().size(), 10u);
  const std::byte* data = a.data();
  const Buffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(Buffer(0).data(), nullptr);
}

}  // namespace
}  // namespace batchfs

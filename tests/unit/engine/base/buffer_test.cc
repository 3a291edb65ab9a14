#include "engine/base/buffer.h"
#include "engine/base/buffer_pool.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace batchfs {
namespace buffer_test {

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

TEST(Buffer, LargeOnesAreSeparateAlignedAndReused) {
  std::byte* freed;
  {
    Buffer a(5 << 20), b(5 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0u);
    std::memset(a.data(), 1, a.size());
    std::memset(b.data(), 2, b.size());
    EXPECT_EQ(a.data()[a.size() - 1], std::byte{1});
    EXPECT_EQ(b.data()[0], std::byte{2});
    freed = a.data();
    b.truncate(3);
  }
  if constexpr (kPoolsBuffers) {
    const Buffer again((5 << 20) - 1000);  // the same class of sizes
    EXPECT_EQ(again.data(), freed);
  }
  const Buffer other(6 << 20);
  EXPECT_NE(other.data(), nullptr);
}

TEST(Buffer, AsManyAreReusedAsThePoolKeeps) {
  if (!kPoolsBuffers) GTEST_SKIP() << "AddressSanitizer watches";
  constexpr std::size_t kSize = 4 << 20;  // four of them are the default limit of kept memory
  const auto reused = [&] {
    std::vector<Buffer> buffers;
    // A new mapping often gets the same address: kept memory is recognized by its bytes.
    int kept = 0;
    for (int i = 0; i < 8; ++i) {
      std::byte* data = buffers.emplace_back(kSize).data();
      kept += data[kSize / 2] == std::byte{77};
      data[kSize / 2] = std::byte{77};
    }
    return kept;
  };
  keep_pooled(0);
  reused();
  EXPECT_EQ(reused(), 4);
  keep_pooled(8 * kSize);
  reused();
  EXPECT_EQ(reused(), 8);
  keep_pooled(0);
  EXPECT_EQ(reused(), 4);
}

TEST(Buffer, WhatIsDiscardedIsNotKept) {
  if (!kPoolsBuffers) GTEST_SKIP() << "AddressSanitizer watches";
  constexpr std::size_t kSize = 3 << 20;
  keep_pooled(0);
  {
    Buffer first(kSize);
    first.data()[kSize / 2] = std::byte{55};
    first.discard();
    EXPECT_EQ(first.size(), 0u);
    EXPECT_EQ(first.data(), nullptr);
    first.discard();
  }
  EXPECT_EQ(Buffer(kSize).data()[kSize / 2], std::byte{0});
  Buffer small(100);
  small.discard();
  EXPECT_EQ(small.size(), 0u);
}

TEST(Buffer, AnImpossibleSizeThrows) { EXPECT_THROW(Buffer(SIZE_MAX / 2), std::bad_alloc); }

}  // namespace buffer_test
}  // namespace batchfs

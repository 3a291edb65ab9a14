#include "engine/base/error.h"
#include "engine/pipeline/memory_file.h"

#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace batchfs {
namespace {

/// In huge pages where this process may have them, and without.
class MemoryFileTest : public testing::TestWithParam<bool> {
 protected:
  const MemoryFiles files_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Pages, MemoryFileTest, testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "huge" : "small"; });

TEST_P(MemoryFileTest, IsReadableThroughItsDescriptorAndSealed) {
  for (const std::uint64_t size : {10000u, 5u << 20}) {
    MemoryFile file = files_.create("test", size);
    std::memset(file.data(), 7, file.size());
    file.seal();
    unsigned char byte = 0;
    EXPECT_EQ(::pread(file.fd(), &byte, 1, 9999), 1);
    EXPECT_EQ(byte, 7);
    EXPECT_EQ(::pwrite(file.fd(), &byte, 1, 0), -1);
    EXPECT_EQ(::ftruncate(file.fd(), 1), -1);
    EXPECT_EQ(::ftruncate(file.fd(), 20 << 20), -1);
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0), MAP_FAILED);
    EXPECT_GE(files_.memory_of(size), size);
    EXPECT_LE(files_.memory_of(size), size + size / 2);
  }
}

TEST_P(MemoryFileTest, ASizeThatCannotBeIsAnError) {
  EXPECT_THROW(files_.create("test", std::uint64_t{1} << 63), Error);
}

TEST_P(MemoryFileTest, MovesAndMayBeEmpty) {
  MemoryFile a = files_.create("test", 100);
  const std::byte* data = a.data();
  MemoryFile b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.fd(), -1);
  MemoryFile empty = files_.create("test", 0);
  EXPECT_EQ(empty.span().size(), 0u);
  empty.seal();
}

TEST_P(MemoryFileTest, KnowsWhatOthersStillMap) {
  constexpr std::uint64_t kSize = 4 << 20;
  EXPECT_EQ(files_.mapped_by_others(), 0u);
  void* mapped;
  {
    MemoryFile file = files_.create("test", kSize);
    std::memset(file.data(), 7, kSize);
    file.seal();
    mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, file.fd(), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_EQ(files_.mapped_by_others(), 0u);
    const MemoryFile moved(std::move(file));
    EXPECT_EQ(files_.mapped_by_others(), 0u);
  }
  EXPECT_EQ(files_.mapped_by_others(), files_.huge_pages() ? kSize : 0);
  EXPECT_EQ(static_cast<const unsigned char*>(mapped)[kSize - 1], 7);
  ::munmap(mapped, kSize);
  EXPECT_EQ(files_.mapped_by_others(), 0u);
}

}  // namespace
}  // namespace batchfs

#include "engine/pipeline/memory_file.h"

#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace batchfs {
namespace {

TEST(MemoryFile, IsReadableThroughItsDescriptorAndSealed) {
  MemoryFile file("test", 10000);
  std::memset(file.data(), 7, file.size());
  file.seal();
  unsigned char byte = 0;
  EXPECT_EQ(::pread(file.fd(), &byte, 1, 9999), 1);
  EXPECT_EQ(byte, 7);
  EXPECT_EQ(::pwrite(file.fd(), &byte, 1, 0), -1);
  EXPECT_EQ(::ftruncate(file.fd(), 1), -1);
  EXPECT_EQ(::ftruncate(file.fd(), 20000), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0), MAP_FAILED);
}

TEST(MemoryFile, MovesAndMayBeEmpty) {
  MemoryFile a("test", 100);
  const std::byte* data = a.data();
  MemoryFile b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.fd(), -1);
  MemoryFile empty("test", 0);
  EXPECT_EQ(empty.span().size(), 0u);
  empty.seal();
}

}  // namespace
}  // namespace batchfs

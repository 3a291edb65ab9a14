#include "fs/fuse/request_buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace batchfs {
namespace request_buffer_test {

constexpr std::size_t kSize = std::size_t{1} << 20;

class RequestBuffer : public testing::Test {
 protected:
  void SetUp() override {
    void* const mapped =
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    ASSERT_EQ(::madvise(mapped, kSize, MADV_NOHUGEPAGE), 0);
    bytes = static_cast<std::byte*>(mapped);
  }
  void TearDown() override { ::munmap(bytes, kSize); }

  bool is_mapped(std::size_t offset) const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    unsigned char found = 0;
    EXPECT_EQ(::mincore(bytes + offset / page * page, 1, &found), 0);
    return (found & 1) != 0;
  }

  std::byte* bytes = nullptr;
};

TEST_F(RequestBuffer, PagesThatARequestMayFillAreMapped) {
  ASSERT_FALSE(is_mapped(0));
  map_request_buffer({bytes + 16, kSize - 16});  // as malloc() aligns it
  EXPECT_TRUE(is_mapped(16));
  EXPECT_TRUE(is_mapped(16 + 4096));
  EXPECT_TRUE(is_mapped(16 + 8191));
}

TEST_F(RequestBuffer, SmallBuffersAreNotLeft) {
  bytes[100] = std::byte{7};
  map_request_buffer({bytes, 100});
  map_request_buffer({bytes, 0});
  EXPECT_EQ(bytes[100], std::byte{7});
}

}  // namespace request_buffer_test
}  // namespace batchfs

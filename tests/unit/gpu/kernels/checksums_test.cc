#include "gpu/kernels/checksums.cuh"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/unit/gpu/emulate.h"

namespace batchfs::gpu {
namespace checksums_test {

constexpr std::size_t kSizes[] = {0, 1, 3, 4, 5, 63, 64, 65, 255, 256, 257, 1000, 65'521, 400'003};

TEST(Checksums, AreThoseOfZlib) {
  const auto shared = std::make_unique<ChecksumShared<64>>();
  for (const Data kind : kAllData)
    for (const std::size_t size : kSizes) {
      const std::vector<std::uint8_t> data = make_data(kind, size);
      const auto length = static_cast<std::uint32_t>(size);
      EXPECT_EQ(adler32_of<64>(*shared, data.data(), length), ::adler32(1, data.data(), length))
          << size;
      EXPECT_EQ(crc32_of<64>(*shared, data.data(), length), ::crc32(0, data.data(), length))
          << size;
    }
}

TEST(Checksums, OfTheLargestBytesDoNotOverflow) {
  const auto shared = std::make_unique<ChecksumShared<64>>();
  const std::vector<std::uint8_t> data(20'000'001, 0xff);
  const auto length = static_cast<std::uint32_t>(data.size());
  EXPECT_EQ(adler32_of<64>(*shared, data.data(), length), ::adler32(1, data.data(), length));
}

TEST(Checksums, OfBytesAtAnyAddress) {
  const auto shared = std::make_unique<ChecksumShared<64>>();
  const std::vector<std::uint8_t> data = make_data(Data::noise, 1000);
  for (std::uint32_t begin = 0; begin < 8; ++begin) {
    EXPECT_EQ(adler32_of<64>(*shared, data.data() + begin, 990),
              ::adler32(1, data.data() + begin, 990));
    EXPECT_EQ(crc32_of<64>(*shared, data.data() + begin, 990),
              ::crc32(0, data.data() + begin, 990));
  }
}

}  // namespace checksums_test
}  // namespace batchfs::gpu

#include "engine/store/deflate_decoder.h"

#include <thread>

#include <gtest/gtest.h>

namespace batchfs {
namespace deflate_decoder_test {

TEST(DeflateDecoder, EachThreadHasOne) {
  libdeflate_decompressor* const own = deflate_decoder();
  EXPECT_EQ(deflate_decoder(), own);
  std::thread([own] { EXPECT_NE(deflate_decoder(), own); }).join();
}

TEST(DeflateDecoder, Decodes) {
  const unsigned char stored[] = {1, 2, 0, 0xfd, 0xff, 'h', 'i'};  // one block, not compressed
  char out[2];
  std::size_t size = 0;
  ASSERT_EQ(libdeflate_deflate_decompress(deflate_decoder(), stored, sizeof stored, out, sizeof out,
                                          &size),
            LIBDEFLATE_SUCCESS);
  EXPECT_EQ(std::string(out, size), "hi");
}

}  // namespace deflate_decoder_test
}  // namespace batchfs

#include "fs/export/tar.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace batchfs {
namespace tar_test {

/// The bytes of Python's tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT), with the mode 0644.
std::string header_of_python(const std::string& name, const std::string& size,
                             const std::string& checksum) {
  const auto field = [](std::string text, std::size_t length) {
    text.resize(length, '\0');
    return text;
  };
  return field(name, 100) + field("0000644", 8) + field("0000000", 8) + field("0000000", 8) +
         field(size, 12) + field("00000000000", 12) + field(checksum, 7) + " " + "0" +
         field("", 100) + field("ustar", 6) + "00" + field("", 247);
}

TEST(Tar, HeadersAreThoseOfPython) {
  EXPECT_EQ(tar_header("a/000001.npy", 1234),
            header_of_python("a/000001.npy", "00000002322", "007434"));
  EXPECT_EQ(tar_header("a/000001.npy", 1234).size(), 512u);
}

TEST(Tar, BlocksAreFilled) {
  for (const std::uint64_t size : {0, 1, 511, 512, 513, 1 << 20}) {
    EXPECT_EQ((size + tar_padding(size).size()) % 512, 0u) << size;
    EXPECT_LT(tar_padding(size).size(), 512u) << size;
    EXPECT_EQ(tar_padding(size).find_first_not_of('\0'), std::string::npos);
  }
  EXPECT_EQ(tar_end(), std::string(1024, '\0'));
}

TEST(Tar, WhatAHeaderCannotHoldIsRefused) {
  EXPECT_NO_THROW(tar_header(std::string(100, 'a'), (UINT64_C(1) << 33) - 1));
  EXPECT_THROW(tar_header(std::string(101, 'a'), 1), Error);
  EXPECT_THROW(tar_header("a", UINT64_C(1) << 33), Error);
}

}  // namespace tar_test
}  // namespace batchfs

#include "fs/fuse/fuse_abi.h"

#include <cstddef>

#include <gtest/gtest.h>
#include <linux/fuse.h>

namespace batchfs::fuse_abi {
namespace fuse_abi_test {

// The system's <linux/fuse.h> knows most of it; the additions of Linux 6.9 are compared with the
// numbers of its include/uapi/linux/fuse.h.

TEST(FuseAbi, StructuresAreTheKernels) {
  EXPECT_EQ(sizeof(InHeader), sizeof(fuse_in_header));
  EXPECT_EQ(offsetof(InHeader, opcode), offsetof(fuse_in_header, opcode));
  EXPECT_EQ(offsetof(InHeader, unique), offsetof(fuse_in_header, unique));
  EXPECT_EQ(sizeof(OutHeader), sizeof(fuse_out_header));
  EXPECT_EQ(offsetof(OutHeader, unique), offsetof(fuse_out_header, unique));
  EXPECT_EQ(sizeof(InitIn), sizeof(fuse_init_in));
  EXPECT_EQ(offsetof(InitIn, flags), offsetof(fuse_init_in, flags));
  EXPECT_EQ(offsetof(InitIn, flags2), offsetof(fuse_init_in, flags2));
  EXPECT_EQ(sizeof(InitOut), sizeof(fuse_init_out));
  EXPECT_EQ(offsetof(InitOut, flags), offsetof(fuse_init_out, flags));
  EXPECT_EQ(offsetof(InitOut, max_background), offsetof(fuse_init_out, max_background));
  EXPECT_EQ(offsetof(InitOut, max_write), offsetof(fuse_init_out, max_write));
  EXPECT_EQ(offsetof(InitOut, map_alignment), offsetof(fuse_init_out, map_alignment));
  EXPECT_EQ(offsetof(InitOut, flags2), offsetof(fuse_init_out, flags2));
  EXPECT_EQ(offsetof(InitOut, max_stack_depth), 36u);  // after flags2
  EXPECT_EQ(sizeof(OpenOut), sizeof(fuse_open_out));
  EXPECT_EQ(offsetof(OpenOut, flags), offsetof(fuse_open_out, open_flags));
  EXPECT_EQ(offsetof(OpenOut, backing_id), 12u);
}

TEST(FuseAbi, FlagsAreTheKernels) {
  EXPECT_EQ(kInitOpcode, FUSE_INIT);
  EXPECT_EQ(kParallelDirops, static_cast<std::uint64_t>(FUSE_PARALLEL_DIROPS));
  EXPECT_EQ(kInitExtended, static_cast<std::uint64_t>(FUSE_INIT_EXT));
  EXPECT_EQ(kOpenDirectIo, static_cast<std::uint32_t>(FOPEN_DIRECT_IO));
  EXPECT_EQ(kOpenKeepCache, static_cast<std::uint32_t>(FOPEN_KEEP_CACHE));
  EXPECT_EQ(kOpenNoFlush, static_cast<std::uint32_t>(FOPEN_NOFLUSH));
  EXPECT_EQ(kDirectIoAllowMmap, 0x1000000000u);
  EXPECT_EQ(kPassthrough, 0x2000000000u);
  EXPECT_EQ(kOpenPassthrough, 0x80u);
  // _IOW(229, 1, struct fuse_backing_map) of 16 bytes, _IOW(229, 2, uint32_t)
  EXPECT_EQ(kBackingOpen, 0x4010e501u);
  EXPECT_EQ(kBackingClose, 0x4004e502u);
}

}  // namespace fuse_abi_test
}  // namespace batchfs::fuse_abi

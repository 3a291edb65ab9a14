#include "fs/fuse/fuse_init.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <linux/fuse.h>

namespace batchfs {
namespace fuse_init_test {

using namespace fuse_abi;

/// A request as the kernel writes it, in the kernel's own structures.
std::vector<std::byte> request(std::uint32_t opcode, std::uint32_t flags, std::uint32_t flags2) {
  fuse_in_header header{};
  fuse_init_in init{};
  header.len = sizeof header + sizeof init;
  header.opcode = opcode;
  header.unique = 77;
  init.major = 7;
  init.minor = 41;
  init.flags = flags;
  init.flags2 = flags2;
  std::vector<std::byte> bytes(header.len);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &init, sizeof init);
  return bytes;
}

TEST(InitOffer, IsWhatTheKernelSaysOfItself) {
  const auto offer = init_offer_of(request(FUSE_INIT, FUSE_INIT_EXT | FUSE_ASYNC_READ, 0xb0));
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->unique, 77u);
  EXPECT_EQ(offer->flags, (std::uint64_t{0xb0} << 32) | FUSE_INIT_EXT | FUSE_ASYNC_READ);
}

TEST(InitOffer, WithoutTheFlagForMoreFlagsThereAreNone) {
  EXPECT_EQ(init_offer_of(request(FUSE_INIT, FUSE_ASYNC_READ, 0xffffffff))->flags,
            static_cast<std::uint64_t>(FUSE_ASYNC_READ));
}

TEST(InitOffer, OfNoOtherRequestAndOfNoneThatIsShorter) {
  EXPECT_FALSE(init_offer_of(request(FUSE_LOOKUP, FUSE_INIT_EXT, 0xb0)));
  const std::vector<std::byte> whole = request(FUSE_INIT, FUSE_INIT_EXT, 0xb0);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(init_offer_of(cut)) << size;
  }
}

constexpr std::uint64_t kAll =
    kParallelDirops | kInitExtended | kDirectIoAllowMmap | kPassthrough | kHasResend;

TEST(AmendInit, UsesAllThatIsOffered) {
  InitOut reply{};
  reply.flags = FUSE_ASYNC_READ;
  reply.max_write = 4096;
  EXPECT_EQ(amend_init(reply, kAll, true), kAll | FUSE_ASYNC_READ);
  EXPECT_EQ(reply.flags, FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS | FUSE_INIT_EXT);
  EXPECT_EQ(reply.flags2, 0xb0u);  // 1 << 4, 1 << 5, 1 << 7
  EXPECT_EQ(reply.max_stack_depth, 1u);
  EXPECT_EQ(reply.max_write, 4096u);
}

TEST(AmendInit, PassthroughOnlyWhereItIsWanted) {
  InitOut reply{};
  EXPECT_EQ(amend_init(reply, kAll, false), kAll & ~kPassthrough);
  EXPECT_EQ(reply.max_stack_depth, 0u);
}

TEST(AmendInit, NothingThatIsNotOffered) {
  InitOut reply{};
  EXPECT_EQ(amend_init(reply, 0, true), 0u);
  // A kernel without extended flags: the field has no meaning.
  EXPECT_EQ(amend_init(reply, kAll & ~kInitExtended, true), kParallelDirops);
  EXPECT_EQ(reply.flags2, 0u);
  EXPECT_EQ(reply.max_stack_depth, 0u);
}

TEST(AmendInit, AnyOfTheHighFlagsBringsTheFlagForThem) {
  for (const std::uint64_t flag : {kDirectIoAllowMmap, kPassthrough, kHasResend}) {
    InitOut reply{};
    EXPECT_EQ(amend_init(reply, kInitExtended | flag, true), kInitExtended | flag);
    EXPECT_EQ(reply.flags, static_cast<std::uint32_t>(kInitExtended));
  }
}

}  // namespace fuse_init_test
}  // namespace batchfs

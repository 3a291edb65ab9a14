// The kernel's first request, and libfuse's reply to it, which is amended. One byte selects whether
// passthrough is wanted, 64 are the reply; the rest is the request.

#include "fs/fuse/fuse_init.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace batchfs;
  Input input(data, size);
  const bool passthrough = input.number<std::uint8_t>() % 2 != 0;
  const auto before = input.number<fuse_abi::InitOut>();
  const auto rest = input.rest();
  // Separate memory, so that an access past its end is detected.
  const std::vector<std::byte> request(rest.begin(), rest.end());
  const auto offer = init_offer_of(request);
  if (!offer) return 0;
  fuse_abi::InitOut reply = before;
  const std::uint64_t flags = amend_init(reply, offer->flags, passthrough);
  const std::uint64_t had = before.flags | (static_cast<std::uint64_t>(before.flags2) << 32),
                      added = flags & ~had;
  must((reply.flags | (static_cast<std::uint64_t>(reply.flags2) << 32)) == flags);
  must((had & ~flags) == 0 && (added & ~offer->flags) == 0);
  must((added >> 32) == 0 || (flags & fuse_abi::kInitExtended) != 0);
  must(passthrough || (added & fuse_abi::kPassthrough) == 0);
  must((added & fuse_abi::kPassthrough) == 0 || reply.max_stack_depth == 1);
  // All else of the reply is libfuse's.
  reply.flags = before.flags;
  reply.flags2 = before.flags2;
  if (passthrough) reply.max_stack_depth = before.max_stack_depth;
  must(std::memcmp(&reply, &before, sizeof reply) == 0);
  return 0;
}

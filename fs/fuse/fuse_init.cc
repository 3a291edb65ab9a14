#include "fs/fuse/fuse_init.h"

#include <cstring>

namespace batchfs {

std::optional<InitOffer> init_offer_of(std::span<const std::byte> request) {
  fuse_abi::InHeader header;
  fuse_abi::InitIn init;
  if (request.size() < sizeof header + sizeof init) return std::nullopt;
  std::memcpy(&header, request.data(), sizeof header);
  if (header.opcode != fuse_abi::kInitOpcode) return std::nullopt;
  std::memcpy(&init, request.data() + sizeof header, sizeof init);
  InitOffer offer{header.unique, init.flags};
  if ((init.flags & fuse_abi::kInitExtended) != 0)
    offer.flags |= static_cast<std::uint64_t>(init.flags2) << 32;
  return offer;
}

std::uint64_t amend_init(fuse_abi::InitOut& reply, std::uint64_t offered, bool passthrough) {
  std::uint64_t flags = reply.flags | (static_cast<std::uint64_t>(reply.flags2) << 32);
  flags |= offered & fuse_abi::kParallelDirops;
  const std::uint64_t extended = fuse_abi::kDirectIoAllowMmap | fuse_abi::kHasResend |
                                 (passthrough ? fuse_abi::kPassthrough : 0);
  const std::uint64_t used = (offered & fuse_abi::kInitExtended) != 0 ? offered & extended : 0;
  // Without this flag the kernel does not look at those from bit 32 on.
  if (used != 0) flags |= fuse_abi::kInitExtended | used;
  if ((used & fuse_abi::kPassthrough) != 0) reply.max_stack_depth = 1;
  reply.flags = static_cast<std::uint32_t>(flags);
  reply.flags2 = static_cast<std::uint32_t>(flags >> 32);
  return flags;
}

}  // namespace batchfs

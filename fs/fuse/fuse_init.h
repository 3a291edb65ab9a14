#pragma once
// Completes libfuse 3.14's answer to the kernel's INIT request, which lacks passthrough, mapping of
// direct files, resending unanswered requests, and (a bug) parallel lookups. Inspects the request
// as it is read, and amends the reply on its way back.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fs/fuse/fuse_abi.h"

namespace batchfs {

struct InitOffer {
  std::uint64_t unique = 0;  // of the request, and of its reply
  std::uint64_t flags =
      0;  // what the kernel can do; none from bit 32 on where it knows nothing of those
};

/// Parses a request as read from /dev/fuse. nullopt for any request but INIT, and for a kernel too
/// old to send these fields.
std::optional<InitOffer> init_offer_of(std::span<const std::byte> request);

/// Adds the used flags of `offered` to libfuse's reply. Returns all flags in use.
std::uint64_t amend_init(fuse_abi::InitOut& reply, std::uint64_t offered, bool passthrough);

}  // namespace batchfs

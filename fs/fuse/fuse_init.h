#pragma once
// What libfuse 3.14 leaves out of its answer to the kernel's INIT request: passthrough, mapping of
// direct files, sending again what was not answered, and (a bug) parallel lookups. The request is
// looked at as it is read, and the reply is amended on its way back.

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

/// Of a request as it was read from /dev/fuse; nullopt for any but INIT, and for one of a kernel
/// that is too old to have sent what is looked for.
std::optional<InitOffer> init_offer_of(std::span<const std::byte> request);

/// Adds to libfuse's reply what of `offered` is used. Returns the flags of all that is used.
std::uint64_t amend_init(fuse_abi::InitOut& reply, std::uint64_t offered, bool passthrough);

}  // namespace batchfs

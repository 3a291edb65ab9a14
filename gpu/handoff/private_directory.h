#pragma once
// Directories for this user's sockets, which only the user can enter.

#include <string>
#include <vector>

namespace batchfs::handoff {

/// In the order of preference: `$XDG_RUNTIME_DIR/batchfs`, for root /run/batchfs, /tmp/batchfs-UID.
/// Some may not exist.
std::vector<std::string> private_directories();

/// The first of them that exists or can be made, belongs to this user, and that nobody else can
/// enter or replace. Throws access_denied if there is none.
std::string private_directory();

}  // namespace batchfs::handoff

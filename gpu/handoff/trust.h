#pragma once
// Whether a Unix socket can be trusted: batches, and their memory, come from the process that
// listens there.

#include <string>

namespace batchfs::handoff {

/// Throws access_denied, in one line, if the process at the other end of a connected `socket`
/// belongs neither to this user nor to root, or if others can put another socket at `path`. "This
/// user" is the effective one.
void require_own_server(int socket, const std::string& path);

/// Is the process at the other end of `socket` of this user, or, where `or_root`, of root?
bool is_own_peer(int socket, bool or_root);

/// The directory above `path`, or the root, in which someone other than this user and root could
/// replace the path: one that all may write to, unless it is sticky and the entry belongs to this
/// user or root. Empty if there is none. Follows symbolic links; if `path` is missing, checks the
/// directories above it.
std::string changeable_directory(const std::string& path);

}  // namespace batchfs::handoff

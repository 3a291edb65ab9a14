#pragma once
// Whether a Unix socket can be trusted: batches, and their memory, come from the process that
// listens there.

#include <string>

namespace batchfs::handoff {

/// Throws access_denied, in one line, where the process behind a connected `socket` is neither of
/// this user nor of root, or where others can put another socket at `path`. "This user" is the
/// effective one.
void require_own_server(int socket, const std::string& path);

/// Is the process at the other end of `socket` of this user, or, where `or_root`, of root?
bool is_own_peer(int socket, bool or_root);

/// The directory above `path`, or the root, in which somebody else than this user and root could
/// put something else in its place: one that all may write to, and that is not sticky with an entry
/// of this user or root. Empty where there is none. Symbolic links are followed; where `path` is
/// missing, the directories above it count.
std::string changeable_directory(const std::string& path);

}  // namespace batchfs::handoff

#pragma once
// Unix sockets at paths of any length. A socket address holds 107 bytes; longer paths go through
// /proc/self/fd.

#include <chrono>
#include <string>

#include <sys/un.h>

namespace batchfs::handoff {

/// The address of `path`: itself or, if that is too long, its last component below the open
/// `directory`. False if neither fits.
bool unix_address(const std::string& path, int directory, sockaddr_un& address);

/// Connects a SOCK_SEQPACKET socket (close-on-exec, blocking). Returns it, or -1 with errno: EAGAIN
/// when the server, which hangs, has not let it in within `patience` (more than 0).
int connect_to(const std::string& path,
               std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace batchfs::handoff

#pragma once
// The socket that readers connect to, and its location.
//
// A FUSE mount cannot hold a socket: bind(2) needs mknod on the file system, and connect(2) finds a
// listener by the inode it is bound to, never by one that FUSE shows. So the socket lies outside of
// the mount and `.batchfs/handoff.sock` is a symbolic link to it: connect(2) follows it, so any
// program can connect to the path in the mount, and readlink(2) returns the socket's real path (to
// bind-mount it into a container, or when the mount's path is too long for a socket address).
// Rejected: an abstract name, which is bound to a network namespace (containers have their own) and
// which any user could take; a text file with the address, which only our own library could use.
//
// It lies in a private directory (private_directory.h), under a name with the process's number in
// it, so that mounts do not meet. Sockets that a killed process left there are removed by the next
// one that starts.

#include <string>

namespace batchfs::handoff {

/// A bound and listening socket (SOCK_SEQPACKET, close-on-exec, non-blocking). The path appears
/// when one can connect to it and is removed with this object, or by close().
class Listener {
 public:
  /// Listens at this path, replacing a socket without a listener. Throws invalid_argument if
  /// another kind of file or a live socket exists there, access_denied (also if other users could
  /// replace the socket) or io.
  explicit Listener(std::string path);
  /// Listens in the user's own directory, and creates that if it is missing.
  static Listener in_runtime_directory();
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  /// Removes the path and resets the connections that were not accepted. fd() is invalid then.
  void close();

  int fd() const { return fd_; }
  /// Absolute.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  unsigned long long device_ = 0, inode_ = 0;  // of the socket's file
};

}  // namespace batchfs::handoff

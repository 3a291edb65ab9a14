#include "gpu/handoff/listener.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "gpu/handoff/connect.h"
#include "gpu/handoff/private_directory.h"
#include "gpu/handoff/trust.h"

namespace batchfs::handoff {

namespace {

constexpr int kBacklog = 128;

[[noreturn]] void fail(const char* what, const std::string& path) {
  const int cause = errno;
  throw Error(cause == EACCES || cause == EPERM || cause == EROFS ? ErrorCode::access_denied
                                                                  : ErrorCode::io,
              fmt::format("{}: {}", what, describe_system_error(cause)), path);
}

/// Does a process listen there? A socket file without one refuses connections.
bool is_live(const std::string& path) {
  // a server that hangs counts as live
  const int fd = connect_to(path, std::chrono::milliseconds(1));
  if (fd >= 0) ::close(fd);
  return fd >= 0 || errno != ECONNREFUSED;
}

void remove_stale(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.is_socket(error) && entry.path().extension() == ".sock" &&
        !is_live(entry.path().string()))
      ::unlink(entry.path().c_str());
}

}  // namespace

Listener::Listener(std::string path)
    : path_(std::filesystem::absolute(path).lexically_normal().string()) {
  struct stat at;
  if (::lstat(path_.c_str(), &at) == 0) {
    if (!S_ISSOCK(at.st_mode))
      throw Error(ErrorCode::invalid_argument,
                  "there is a file of that name, and it is not a socket", path_);
    if (is_live(path_))
      throw Error(ErrorCode::invalid_argument, "another process serves batches there", path_);
  }
  // No reader would connect to it.
  if (const std::string directory = changeable_directory(path_); !directory.empty())
    throw Error(ErrorCode::access_denied,
                fmt::format("any user could replace the socket, since all may write to '{}'; put "
                            "it into a directory of your "
                            "own, or run chmod o-w '{}'",
                            directory, directory),
                path_);
  fd_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) fail("making a socket", path_);
  // Binds under another name until connections work; through /proc if the path is too long.
  const std::string fresh = fmt::format("{}.{}", path_, std::random_device()());
  const int directory =
      ::open(std::filesystem::path(path_).parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  sockaddr_un address;
  const bool bound = directory >= 0 && unix_address(fresh, directory, address) &&
                     ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int cause = errno;
  if (directory >= 0) ::close(directory);
  if (!bound || ::chmod(fresh.c_str(), 0600) != 0 || ::listen(fd_, kBacklog) != 0 ||
      ::stat(fresh.c_str(), &at) != 0 || ::rename(fresh.c_str(), path_.c_str()) != 0) {
    const int why = bound ? errno : cause;
    if (bound) ::unlink(fresh.c_str());
    ::close(fd_);
    errno = why;
    fail("making a socket", path_);
  }
  device_ = at.st_dev;
  inode_ = at.st_ino;
}

Listener Listener::in_runtime_directory() {
  const std::string directory = private_directory();
  remove_stale(directory);
  return Listener(fmt::format("{}/{}-{:08x}.sock", directory, ::getpid(), std::random_device()()));
}

Listener::Listener(Listener&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::~Listener() { close(); }

void Listener::close() {
  if (fd_ < 0) return;
  // Unless another process has put its own there meanwhile.
  struct stat at;
  if (::lstat(path_.c_str(), &at) == 0 && at.st_dev == device_ && at.st_ino == inode_)
    ::unlink(path_.c_str());
  ::close(std::exchange(fd_, -1));
}

}  // namespace batchfs::handoff

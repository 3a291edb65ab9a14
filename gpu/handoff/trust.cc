#include "gpu/handoff/trust.h"

#include <cstdio>
#include <filesystem>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace batchfs::handoff {

namespace {

namespace fs = std::filesystem;

bool is_own(uid_t user) { return user == ::geteuid() || user == 0; }

}  // namespace

bool is_own_peer(int socket, bool or_root) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || (or_root && peer.uid == 0));
}

std::string changeable_directory(const std::string& path) {
  std::error_code error;
  fs::path entry = fs::weakly_canonical(fs::absolute(path, error), error);
  for (; entry.has_relative_path(); entry = entry.parent_path()) {
    const std::string directory = entry.parent_path().string();
    struct stat above {
    }, at{};
    if (::stat(directory.c_str(), &above) != 0 || (above.st_mode & S_IWOTH) == 0) continue;
    const bool kept =
        (above.st_mode & S_ISVTX) != 0 && (::lstat(entry.c_str(), &at) != 0 || is_own(at.st_uid));
    if (!kept) return directory;
  }
  return {};
}

void require_own_server(int socket, const std::string& path) {
  if (!is_own_peer(socket, true)) {
    ucred peer{};
    socklen_t size = sizeof peer;
    ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    throw Error(ErrorCode::access_denied,
                "the server runs as user " + std::to_string(peer.uid) +
                    ", and batches are taken from this user (" + std::to_string(::geteuid()) +
                    ") and root only; start a server as this user",
                path);
  }
  if (const std::string directory = changeable_directory(path); !directory.empty())
    throw Error(ErrorCode::access_denied,
                "any user can replace the socket, since all may write to '" + directory +
                    "'; use a socket in a directory of your own, or run chmod o-w '" + directory +
                    "'",
                path);
}

}  // namespace batchfs::handoff

#include "gpu/handoff/private_directory.h"

#include <cerrno>
#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "gpu/handoff/trust.h"

namespace batchfs::handoff {

namespace {

/// Makes the directory if need be. In /tmp, anybody could have made it first.
bool is_private_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat at;
  return ::lstat(path.c_str(), &at) == 0 && S_ISDIR(at.st_mode) && at.st_uid == ::geteuid() &&
         (at.st_mode & 077) == 0 && ::access(path.c_str(), W_OK | X_OK) == 0 &&
         changeable_directory(path).empty();
}

}  // namespace

std::vector<std::string> private_directories() {
  std::vector<std::string> candidates;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/')
    candidates.push_back(std::string(runtime) + "/batchfs");
  if (::geteuid() == 0) candidates.push_back("/run/batchfs");
  candidates.push_back("/tmp/batchfs-" + std::to_string(::geteuid()));
  return candidates;
}

std::string private_directory() {
  const std::vector<std::string> candidates = private_directories();
  for (const std::string& candidate : candidates)
    if (is_private_directory(candidate)) return candidate;
  throw Error(
      ErrorCode::access_denied,
      "there is no directory for sockets that only this user can enter; set XDG_RUNTIME_DIR to one",
      candidates.back());
}

}  // namespace batchfs::handoff

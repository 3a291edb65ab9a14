#include "fs/fuse/unmount.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <poll.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/answer_within.h"
#include "engine/base/error.h"
#include "fs/control/stderr_capture.h"

namespace batchfs {

namespace {

/// Unmounts as an ordinary user: fusermount3 is setuid and ends mounts of the user who made them.
/// Returns its exit status, -1 when it cannot be run.
int run_fusermount(const std::string& path, bool lazy) {
  std::string program = "fusermount3", unmount = "-u", detach = "-z", directory = path;
  std::string* const words[] = {&program, &unmount, lazy ? &detach : nullptr, &directory};
  char* arguments[std::size(words) + 1] = {};
  int count = 0;
  for (std::string* word : words)
    if (word != nullptr) arguments[count++] = word->data();
  pid_t pid = 0;
  if (posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Error in_use(const std::string& path) {
  return {ErrorCode::io,
          "a program still uses the mount; close it, or add --lazy to end the mount once it has",
          path};
}

}  // namespace

void unmount(const std::string& path, bool lazy) {
  if (::umount2(path.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return;
  if (errno == EPERM) {
    const StderrCapture told;
    const int status = run_fusermount(path, lazy);
    if (status == 0) return;
    if (status < 0) {
      throw Error(ErrorCode::access_denied,
                  "fusermount3 is needed to unmount as an ordinary user "
                  "(Debian: apt-get install fuse3)",
                  path);
    }
    const std::string why = told.text();
    if (why.find("busy") != std::string::npos) throw in_use(path);
    throw Error(ErrorCode::access_denied,
                "the mount belongs to another user, or cannot be ended: " + why, path);
  }
  if (errno == EBUSY) {
    throw in_use(path);
  }
  throw Error(ErrorCode::io, std::strerror(errno), path);
}

bool is_dead_mount(const std::string& path) {
  return answer_within(std::chrono::seconds(1),
                       [path] {
                         struct statfs ignored;
                         return ::statfs(path.c_str(), &ignored) != 0 && errno == ENOTCONN;
                       })
      .value_or(false);
}

bool has_session_ended(int fuse) {
  pollfd session{fuse, 0, 0};
  return ::poll(&session, 1, 0) == 1 && (session.revents & POLLERR) != 0;
}

}  // namespace batchfs

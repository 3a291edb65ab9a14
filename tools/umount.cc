// batchfs umount: ends a mount, or says at once why it cannot.

#include <cerrno>
#include <cstring>

#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "engine/base/error.h"
#include "tools/command.h"
#include "tools/mounts.h"

namespace batchfs {

namespace {

struct Options {
  std::string directory;
  bool lazy = false;
};

/// Unmounts as an ordinary user: fusermount3 is setuid and ends mounts of the user who made them.
/// Returns its exit status, -1 when it cannot be run.
int run_fusermount(const std::string& path, bool lazy) {
  std::string program = "fusermount3", unmount = "-u", quiet = "-q", detach = "-z", directory = path;
  std::vector<char*> arguments = {program.data(), unmount.data(), quiet.data()};
  if (lazy) arguments.push_back(detach.data());
  arguments.push_back(directory.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void unmount(const Options& options) {
  const std::string path = require_batchfs_mount(options.directory);
  if (::umount2(path.c_str(), UMOUNT_NOFOLLOW | (options.lazy ? MNT_DETACH : 0)) == 0) return;
  if (errno == EPERM) {
    const int status = run_fusermount(path, options.lazy);
    if (status == 0) return;
    if (status < 0) {
      throw Error(ErrorCode::access_denied, "fusermount3 is needed to unmount as an ordinary user "
                  "(Debian: apt-get install fuse3)", options.directory);
    }
    throw Error(ErrorCode::access_denied, "the mount is in use or belongs to another user; close the "
                "programs that read it, or add --lazy to end it once they have", options.directory);
  }
  if (errno == EBUSY) {
    throw Error(ErrorCode::io, "a program still uses the mount; close it, or add --lazy to end the mount "
                "once it has", options.directory);
  }
  throw Error(ErrorCode::io, std::strerror(errno), options.directory);
}

}  // namespace

Run setup_umount(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("DIR", options->directory, "where it is mounted")->required()->type_name("");
  app.add_flag("--lazy", options->lazy,
               "also with programs that still read it: the name goes now, the mount when they are done");
  return [options](Output&) { unmount(*options); };
}

}  // namespace batchfs

#include "fs/fuse/readahead.h"

#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace batchfs {

std::uint64_t raise_readahead(const std::string& mountpoint, std::uint64_t bytes) {
  struct statx mount {};
  // The kernel knows the device number itself: it does not ask the daemon, whose thread this may
  // be.
  if (::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW, 0, &mount) !=
      0)
    return 0;
  const std::string setting =
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", mount.stx_dev_major, mount.stx_dev_minor);
  const auto in_force = [&setting] {
    std::uint64_t kilobytes = 0;
    return std::ifstream(setting) >> kilobytes ? kilobytes << 10 : 0;
  };
  const std::uint64_t found = in_force();
  if (found == 0 || found >= bytes) return found;
  std::ofstream(setting) << (bytes >> 10);
  return in_force();
}

}  // namespace batchfs

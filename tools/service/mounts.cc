#include "tools/service/mounts.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "fs/fuse/unmount.h"

namespace batchfs {

namespace {

/// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 3 < text.size() &&
                         text.find_first_not_of("01234567", i + 1) >= i + 4;
    if (escaped) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Mounted {
  std::string device, type;
};

/// The mount at exactly this path.
std::optional<Mounted> mounted(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<Mounted> result;
  for (std::string line; std::getline(mounts, line);) {
    // "36 35 98:0 /root /mount/point options [optional fields] - type source super-options"
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() < 5 || unescape(fields[4]) != path) continue;
    for (std::size_t i = 5; i + 1 < fields.size(); ++i) {
      if (fields[i] == "-") {
        result = {fields[2], fields[i + 1]};  // the last one mounted there is on top
        break;
      }
    }
  }
  return result;
}

}  // namespace

std::string mount_path(const std::string& directory) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "/mnt/era5/"
  const std::filesystem::path parent = std::filesystem::canonical(path.parent_path(), error);
  if (error)
    throw Error(ErrorCode::not_found, "no such directory", "the mount point '" + directory + "'");
  // Follows a symbolic link to a mount, but does not look into a mount itself: its daemon may be
  // gone.
  std::filesystem::path real = parent / path.filename();
  if (!mounted_type(real.string()) && std::filesystem::is_symlink(real, error)) {
    real = std::filesystem::canonical(real, error);
    if (error)
      throw Error(ErrorCode::not_found, "no such directory", "the mount point '" + directory + "'");
  }
  return real.string();
}

std::optional<std::string> mounted_type(const std::string& path) {
  const auto found = mounted(path);
  return found ? std::optional(found->type) : std::nullopt;
}

std::optional<std::string> mounted_device(const std::string& path) {
  const auto found = mounted(path);
  return found ? std::optional(found->device) : std::nullopt;
}

std::string require_batchfs_mount(const std::string& directory) {
  const std::string path = mount_path(directory);
  const std::optional<std::string> type = mounted_type(path);
  if (!type) throw Error(ErrorCode::invalid_argument, "nothing is mounted there", directory);
  if (*type != "fuse.batchfs") {
    throw Error(ErrorCode::invalid_argument, "not a batchfs mount but " + *type, directory);
  }
  return path;
}

void end_dead_mount(const std::string& directory) {
  const std::string path = mount_path(directory);
  if (mounted_type(path) == "fuse.batchfs" && is_dead_mount(path)) unmount(path, true);
}

}  // namespace batchfs

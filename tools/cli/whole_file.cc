#include "tools/cli/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "engine/store/output/parent_folder.h"

namespace batchfs {

namespace {

Error failure(int error, const std::string& path) {
  return Error(error == EACCES ? ErrorCode::access_denied : ErrorCode::io,
               describe_system_error(error), path);
}

/// Opens `path` with `mode` of fopen(3) and writes the text, after the file has `permissions` if
/// they are given. Returns errno, or 0.
int write_to(const std::string& path, const char* mode, const std::string& text,
             std::optional<std::filesystem::perms> permissions = {}) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (file == nullptr) return errno;
  if (permissions && ::fchmod(::fileno(file), static_cast<mode_t>(*permissions)) != 0) {
    const int error = errno;
    std::fclose(file);
    return error;
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  if (std::fclose(file) != 0) return errno;
  return written ? 0 : write_error;
}

/// Where symbolic links lead to, whether or not there is a file.
std::string end_of_links(std::filesystem::path path) {
  constexpr int kMaxLinks = 40;  // as the kernel
  std::error_code error;
  for (int i = 0; i < kMaxLinks; ++i) {
    const std::filesystem::path link = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / link;  // `link` alone if it is absolute
  }
  return path.string();
}

}  // namespace

void write_whole_file(const std::string& path, const std::string& text) {
  expect_parent_folder(path);
  std::error_code none;
  const std::filesystem::file_status status = std::filesystem::status(path, none);
  // A device or a pipe cannot be replaced: as root, renaming over /dev/null would remove it.
  if (exists(status) && !is_regular_file(status) && !is_directory(status)) {
    if (const int error = write_to(path, "r+e", text); error != 0) throw failure(error, path);
    return;
  }
  const std::string target = end_of_links(path);
  const std::string part = target + ".part-" + std::to_string(::getpid());
  int error = write_to(part, "we", text,
                       exists(status) ? std::optional(status.permissions()) : std::nullopt);
  if (error == 0 && std::rename(part.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  std::remove(part.c_str());
  throw failure(error, path);
}

}  // namespace batchfs

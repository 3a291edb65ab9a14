#include "tools/service/inherited_descriptors.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

/// `first` to `last`, both included.
void close_range_of(unsigned first, unsigned last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  // Before Linux 5.9, or in a sandbox that does not know the call.
  std::vector<int> open;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error))
    if (const auto number = parse_exact_number(entry.path().filename().string());
        number && *number >= first && *number <= last)
      open.push_back(static_cast<int>(*number));
  for (const int descriptor : open) ::close(descriptor);
}

std::optional<int> descriptor_in(std::string_view path) {
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const auto number = parse_exact_number(path.substr(folder.size()));
    if (number && *number <= static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
      return static_cast<int>(*number);
  }
  return std::nullopt;
}

}  // namespace

void close_inherited_descriptors(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    if (descriptor < static_cast<int>(first)) continue;
    close_range_of(first, static_cast<unsigned>(descriptor) - 1);
    first = static_cast<unsigned>(descriptor) + 1;
  }
  close_range_of(first, std::numeric_limits<unsigned>::max());
}

std::vector<int> descriptors_in(const std::vector<std::string>& paths) {
  std::vector<int> found;
  for (const std::string& path : paths)
    if (const auto descriptor = descriptor_in(path)) found.push_back(*descriptor);
  return found;
}

}  // namespace batchfs

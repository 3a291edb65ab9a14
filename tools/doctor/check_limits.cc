// doctor: limits of this process and memory.

#include <fstream>
#include <thread>

#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include "engine/base/budget.h"
#include "engine/base/strings.h"
#include "tools/doctor/checks.h"

namespace batchfs {

namespace {

constexpr rlim_t kFewFiles = 4096;  // each batch that a reader holds is an open file
constexpr std::uint64_t kLittleMemory = std::uint64_t{1} << 30;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Check check_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max >= kFewFiles)
    return {Check::State::ok, "open files", fmt::format("up to {}", format_count(limit.rlim_max)),
            ""};
  return {Check::State::note, "open files",
          fmt::format("up to {}: each batch that a reader holds open is one",
                      format_count(limit.rlim_max)),
          "raise it: `ulimit -Hn 65536`, LimitNOFILE= in a systemd unit"};
}

Check check_locked_memory() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string size =
      limit.rlim_cur == RLIM_INFINITY ? "no limit" : "up to " + format_size(limit.rlim_cur);
  return {Check::State::ok, "locked memory", size + "; batchfs locks none", ""};
}

Check check_huge_pages() {
  const std::string thp = chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  const std::string shmem = chosen(first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  if (thp.empty() && shmem.empty())
    return {Check::State::note, "huge pages",
            "this kernel has no transparent huge pages: mapping batches is slower", ""};
  const std::string found = fmt::format("enabled: {}, shmem_enabled: {}", thp, shmem);
  // Root's batches lie in a private tmpfs that asks for them; an ordinary user's in memfd, which
  // this setting governs.
  if (::geteuid() == 0 || shmem == "advise" || shmem == "always" || shmem == "within_size" ||
      shmem == "force")
    return {Check::State::ok, "huge pages", found, ""};
  return {Check::State::note, "huge pages",
          found + ": batches of ordinary users are mapped in pages of 4 KB, which is slower",
          "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled"};
}

Check check_memory() {
  const std::uint64_t budget = default_memory_budget();
  const std::string found = fmt::format(
      "mounts use up to {} unless --memory says otherwise, half of the memory of the machine "
      "or its control group; {} processors",
      format_size(budget), std::thread::hardware_concurrency());
  if (budget >= kLittleMemory) return {Check::State::ok, "memory", found, ""};
  return {Check::State::note, "memory", found + ". That is little: few batches are prefetched",
          "give the container or the job more memory, and --memory to the mount"};
}

}  // namespace

std::string chosen(const std::string& choices) {
  const std::size_t begin = choices.find('['), end = choices.find(']', begin);
  return begin == std::string::npos || end == std::string::npos
             ? ""
             : choices.substr(begin + 1, end - begin - 1);
}

Checks check_limits() {
  return {check_files(), check_locked_memory(), check_huge_pages(), check_memory()};
}

}  // namespace batchfs

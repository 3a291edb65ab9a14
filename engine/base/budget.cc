#include "engine/base/budget.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <sys/sysinfo.h>

#include "engine/base/invariant.h"

namespace batchfs {

namespace {

/// More was released than was reserved: the difference is past every real size.
void check_used(std::uint64_t used) {
  check_invariant(used < std::uint64_t{1} << 63, "no more memory is released than was reserved");
}

}  // namespace

Budget::Reservation Budget::try_reserve(std::uint64_t bytes) {
  std::uint64_t used = used_->load(std::memory_order_relaxed);
  check_used(used);
  const std::uint64_t limit = limit_ - std::min(limit_, outside());
  do {
    if (bytes > limit || used > limit - bytes) return {};
  } while (!used_->compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return {used_, bytes};
}

Budget::Reservation Budget::reserve(std::uint64_t bytes) {
  check_used(used_->fetch_add(bytes, std::memory_order_relaxed));
  return {used_, bytes};
}

namespace {

std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;  // "max" is none
}

/// A line "NAME VALUE" of memory.stat; 0 when there is none.
std::uint64_t statistic(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  std::string word;
  std::uint64_t value = 0;
  while (in >> word >> value)
    if (word == name) return value;
  return 0;
}

}  // namespace

std::uint64_t default_memory_budget() {
  struct sysinfo info {};
  std::uint64_t memory = UINT64_C(4) << 30;
  if (sysinfo(&info) == 0) memory = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
  const std::optional<CgroupMemory> cgroup = cgroup_memory();
  return std::min(memory, cgroup ? cgroup->limit : UINT64_MAX) / 2;
}

std::optional<CgroupMemory> cgroup_memory() {
  std::optional<CgroupMemory> found;
  std::ifstream self("/proc/self/cgroup");
  for (std::string line; std::getline(self, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* const limit_file = v2 ? "/memory.max" : "/memory.limit_in_bytes";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    // In a container the path may be one that only the host has: then its own cgroup is at the
    // root.
    if (!number_in(root + path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"))) path.clear();
    if (const auto used =
            number_in(root + path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"))) {
      if (!found) found.emplace();
      found->used = *used;
      found->shared = statistic(root + path + "/memory.stat", "shmem");
    }
    for (;;) {
      // Version 1 has no word for "no limit": it writes the largest multiple of a page below 2^63.
      constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;
      if (const auto limit = number_in(root + path + limit_file); limit && *limit < kNoLimit) {
        if (!found) found.emplace();
        found->limit = std::min(found->limit, *limit);
      }
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return found;
}

}  // namespace batchfs

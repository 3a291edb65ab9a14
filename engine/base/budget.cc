#include "engine/base/budget.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <sys/sysinfo.h>

namespace batchfs {

Budget::Reservation Budget::try_reserve(std::uint64_t bytes) {
  std::uint64_t used = used_->load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return {};
  } while (!used_->compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return {used_, bytes};
}

Budget::Reservation Budget::reserve(std::uint64_t bytes) {
  used_->fetch_add(bytes, std::memory_order_relaxed);
  return {used_, bytes};
}

namespace {

/// The least limit on the way from this process's cgroup to the root; UINT64_MAX when there is none.
std::uint64_t cgroup_memory_limit() {
  std::uint64_t limit = UINT64_MAX;
  auto take = [&](const std::string& file) {
    std::ifstream in(file);
    std::uint64_t value = 0;
    if (in >> value) limit = std::min(limit, value);  // "max" does not parse: no limit
  };
  std::ifstream self("/proc/self/cgroup");
  for (std::string line; std::getline(self, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    for (;;) {
      if (v2) take("/sys/fs/cgroup" + path + "/memory.max");
      else take("/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes");
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return limit;
}

}  // namespace

std::uint64_t default_memory_budget() {
  struct sysinfo info {};
  std::uint64_t memory = UINT64_C(4) << 30;
  if (sysinfo(&info) == 0) memory = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
  return std::min(memory, cgroup_memory_limit()) / 2;
}

}  // namespace batchfs

#include "gpu/handoff/process_share.h"

#include <algorithm>

#include <sys/resource.h>

namespace batchfs::handoff {

namespace {

/// Descriptors that a batch keeps open here: for writing, for readers, and of the read-only mount.
constexpr std::uint64_t kDescriptors = 3;
/// A batch is mapped, and a process has 65530 mappings (vm.max_map_count).
constexpr std::uint64_t kMaxMappings = 65530;

}  // namespace

void ProcessShare::take(std::uint64_t bytes) {
  ++batches_;
  bytes_ += bytes;
}

void ProcessShare::give_back(std::uint64_t bytes) {
  --batches_;
  bytes_ -= bytes;
}

bool ProcessShare::fits(std::uint64_t bytes, std::uint64_t limit, bool first) const {
  if (batches_ >= most_batches_) return false;
  if (bytes_ == 0) return true;
  // With less than that, one reader alone could not hold a batch while it waits for the next.
  if (bytes > limit / 3) return bytes_ + bytes <= limit;
  return bytes_ + bytes <= std::max(first ? limit / 4 * 3 : limit / 2, 2 * bytes);
}

bool ProcessShare::fits_ahead(std::uint64_t bytes, std::uint64_t limit) const {
  return batches_ < most_batches_ / 2 &&
         bytes_ + bytes <= limit / 2 / std::max<std::size_t>(connections, 1);
}

std::size_t most_batches_of_process() {
  rlimit files{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
  const std::uint64_t most = known ? files.rlim_cur / kDescriptors : kMaxMappings;
  return static_cast<std::size_t>(std::max<std::uint64_t>(std::min(most, kMaxMappings) / 2, 8));
}

}  // namespace batchfs::handoff

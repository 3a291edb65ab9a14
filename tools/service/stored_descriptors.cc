#include "tools/service/stored_descriptors.h"

#include <algorithm>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

constexpr int kFirstDescriptor = 3;  // sd_listen_fds(3)
constexpr long kMaxStored = 64;

/// The variable's value, and the variable gone.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  ::unsetenv(name);
  return text;
}

}  // namespace

bool StoredDescriptors::are_there() {
  const char* process = std::getenv("LISTEN_PID");
  return process != nullptr && process == std::to_string(::getpid());
}

std::vector<int> StoredDescriptors::hand_on(pid_t parent) {
  const char* process = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  std::vector<int> stored;
  if (process == nullptr || count == nullptr || process != std::to_string(parent)) return stored;
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  for (int i = 0; i < std::clamp(std::strtol(count, nullptr, 10), 0L, kMaxStored); ++i)
    stored.push_back(kFirstDescriptor + i);
  return stored;
}

StoredDescriptors::StoredDescriptors() {
  const std::string process = take_variable("LISTEN_PID");
  const long count = std::strtol(take_variable("LISTEN_FDS").c_str(), nullptr, 10);
  const std::vector<std::string> names = split(take_variable("LISTEN_FDNAMES"), ':');
  if (process != std::to_string(::getpid())) return;
  for (int i = 0; i < std::clamp(count, 0L, kMaxStored); ++i) {
    const int descriptor = kFirstDescriptor + i;
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) continue;
    const auto number = static_cast<std::size_t>(i);
    stored_.emplace_back(number < names.size() ? names[number] : "", descriptor);
  }
}

int StoredDescriptors::take(std::string_view name) {
  const auto it = std::find_if(stored_.begin(), stored_.end(),
                               [&](const auto& entry) { return entry.first == name; });
  if (it == stored_.end()) return -1;
  const int descriptor = it->second;
  stored_.erase(it);
  return descriptor;
}

}  // namespace batchfs

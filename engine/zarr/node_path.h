#pragma once
// Paths of groups and arrays in a store.

#include <cstddef>
#include <string>
#include <string_view>

namespace batchfs {

/// The path of a node below a group; "" is the root.
inline std::string join_path(const std::string& group, std::string_view name) {
  return group.empty() ? std::string(name) : group + "/" + std::string(name);
}

/// The path of the group that a node is in.
inline std::string parent_group(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// The reason of a node's problem, shortened: it may quote contents of a store.
inline std::string short_reason(std::string why) {
  constexpr std::size_t kMaxReason = 1000;
  return why.size() > kMaxReason ? why.substr(0, kMaxReason) + "..." : why;
}

}  // namespace batchfs

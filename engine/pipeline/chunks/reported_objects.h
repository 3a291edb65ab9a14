#pragma once
// Objects of the store whose change the log has already reported.
//
// Every batch that needs such an object fails, and so does every further try: without this, the log
// would hold nothing else.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_set>

namespace batchfs {

/// Thread-safe.
class ReportedObjects {
 public:
  /// After this many all are forgotten.
  static constexpr std::size_t kMaxObjects = 1 << 16;

  /// Notes an object. Is it new?
  bool add(std::string_view object) {
    const std::lock_guard lock(mutex_);
    if (hashes_.size() >= kMaxObjects) hashes_.clear();
    return hashes_.insert(std::hash<std::string_view>()(object)).second;
  }

 private:
  std::mutex mutex_;  // guards hashes_; no other lock is taken while it is held
  std::unordered_set<std::size_t> hashes_;
};

}  // namespace batchfs

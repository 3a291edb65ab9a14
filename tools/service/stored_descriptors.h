#pragma once
// Descriptors that the service manager has kept for the next process of a service:
// sd_listen_fds_with_names(3), without its library.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace batchfs {

class StoredDescriptors {
 public:
  /// Has the manager kept some for this process?
  static bool are_there();
  /// Takes over the descriptors that the manager passed to `parent`, of which this process is a
  /// fork. Returns them.
  static std::vector<int> hand_on(pid_t parent);
  /// Takes LISTEN_* out of the environment.
  StoredDescriptors();

  /// The one of this name, from now on the caller's; -1 when there is none.
  int take(std::string_view name);

 private:
  std::vector<std::pair<std::string, int>> stored_;
};

}  // namespace batchfs

#include "tools/service/mount_service.h"

#include <algorithm>
#include <cerrno>

#include <sys/vfs.h>

namespace batchfs {

namespace {

/// The shorter one of those that are wanted.
std::optional<std::chrono::microseconds> shorter(std::optional<std::chrono::microseconds> a,
                                                 std::optional<std::chrono::microseconds> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

MountService::MountService(std::string store, std::string directory, std::function<void()> alive,
                           std::optional<std::chrono::microseconds> interval)
    : store_(std::move(store)),
      directory_(std::move(directory)),
      // statfs(2) is never answered from the kernel's caches, and holds nothing of the mount open
      // that would keep it from being unmounted. After a lazy unmount it asks the file system
      // below, which is harmless: there are no new readers. An error does not mean that the daemon
      // hangs, either: the directory that the mount is in may have been moved or closed to this
      // user.
      watchdog_(
          [directory = directory_, alive = std::move(alive)] {
            struct statfs answer;
            const bool answered = ::statfs(directory.c_str(), &answer) == 0 || errno != ENOTCONN;
            if (answered && alive) alive();
            return answered;
          },
          shorter(watchdog_interval(), interval)) {}

void MountService::ready() {
  notify_service_manager("READY=1\nSTATUS=serving " + store_ + " at " + directory_);
  watchdog_.begin();
}

void MountService::stopping() {
  watchdog_.stop();
  notify_service_manager("STOPPING=1");
}

}  // namespace batchfs

#include "tools/mount_service.h"

#include <sys/vfs.h>

namespace batchfs {

MountService::MountService(std::string store, std::string directory)
    : store_(std::move(store)), directory_(std::move(directory)) {}

void MountService::ready() {
  notify_service_manager("READY=1\nSTATUS=serving " + store_ + " at " + directory_);
  // statfs(2) is never answered from the kernel's caches, and holds nothing of the mount open that would keep it
  // from being unmounted. After a lazy unmount it asks what lies below, which is as well: nobody new comes.
  watchdog_.emplace([directory = directory_] {
    struct statfs answer;
    return ::statfs(directory.c_str(), &answer) == 0;
  });
}

void MountService::stopping() {
  if (watchdog_) watchdog_->stop();
  notify_service_manager("STOPPING=1");
}

}  // namespace batchfs

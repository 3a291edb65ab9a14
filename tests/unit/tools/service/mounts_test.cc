#include "tools/service/mounts.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "engine/base/error.h"

namespace batchfs {
namespace mounts_test {

TEST(Mounts, TheTypeAndTheDeviceAreTheKernels) {
  EXPECT_EQ(mounted_type("/proc"), "proc");
  struct stat proc;
  ASSERT_EQ(::stat("/proc", &proc), 0);
  EXPECT_EQ(mounted_device("/proc"),
            std::to_string(major(proc.st_dev)) + ":" + std::to_string(minor(proc.st_dev)));
}

TEST(Mounts, OnlyTheVeryPathCounts) {
  for (const char* path : {"/proc/self", "/pro", "/proc/", "/nowhere"}) {
    EXPECT_FALSE(mounted_type(path)) << path;
    EXPECT_FALSE(mounted_device(path)) << path;
  }
}

TEST(Mounts, APathIsResolvedAsFarAsItsParent) {
  EXPECT_EQ(mount_path("/proc/../proc/"), "/proc");
  EXPECT_EQ(mount_path("/proc/."), "/proc");
}

TEST(Mounts, AnotherFileSystemIsNoMountOfBatchfs) {
  EXPECT_THROW(require_batchfs_mount("/proc"), Error);
  EXPECT_THROW(require_batchfs_mount("/nowhere"), Error);
  end_dead_mount("/proc");  // alive, and not batchfs: nothing happens
  EXPECT_EQ(mounted_type("/proc"), "proc");
}

}  // namespace mounts_test
}  // namespace batchfs

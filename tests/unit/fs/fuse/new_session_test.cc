#define FUSE_USE_VERSION 314
#include "fs/fuse/new_session.h"

#include <fuse3/fuse_lowlevel.h>
#include <gmock/gmock.h>

#include "engine/base/error.h"

namespace batchfs {
namespace new_session_test {

TEST(NewSession, CommasOfTheSourceAreNoSeparators) {
  EXPECT_EQ(fuse_mount_options("s3://b/a,b\\c", false),
            "ro,nosuid,nodev,default_permissions,subtype=batchfs,fsname=s3://b/a\\,b\\\\c");
  EXPECT_THAT(fuse_mount_options("x", true), testing::EndsWith("fsname=x,allow_other"));
}

TEST(NewSession, ARefusedMountIsAnErrorWithTheReason) {
  Log log;
  const FuseLog messages(log);
  const fuse_lowlevel_ops operations{};
  int user = 0;
  try {
    fuse_session_destroy(new_fuse_session({.mountpoint = "/nowhere/at/all", .source = "memory://s"},
                                          operations, &user, messages));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::access_denied);
    EXPECT_THAT(error.why(), testing::HasSubstr("batchfs doctor"));
    EXPECT_EQ(error.where(), "the mount point '/nowhere/at/all'");
  }
}

}  // namespace new_session_test
}  // namespace batchfs

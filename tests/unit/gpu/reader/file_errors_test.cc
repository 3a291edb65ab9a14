#include "gpu/reader/file_errors.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs::reader {
namespace file_errors_test {

using testing::HasSubstr;

TEST(FileErrors, SayWhatToDo) {
  const Error stale = file_error(ESTALE, "/mnt/x");
  EXPECT_EQ(stale.code(), ErrorCode::stale);
  EXPECT_THAT(stale.what(), HasSubstr("the store has changed since this was opened"));
  EXPECT_THAT(stale.what(), HasSubstr("Open it again"));
  EXPECT_THAT(file_error(EIO, "/mnt/x").what(), HasSubstr(".batchfs/log says why (/mnt/x)"));
}

TEST(FileErrors, KindsOfErrno) {
  EXPECT_EQ(file_error(ENOTDIR, "").code(), ErrorCode::not_found);
  EXPECT_EQ(file_error(EPERM, "").code(), ErrorCode::access_denied);
  EXPECT_EQ(file_error(ENFILE, "").code(), ErrorCode::no_memory);
  EXPECT_EQ(file_error(EINVAL, "").code(), ErrorCode::io);
}

}  // namespace file_errors_test
}  // namespace batchfs::reader

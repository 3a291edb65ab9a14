#include "engine/base/error.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace batchfs {
namespace {

TEST(Error, SaysWhyAndWhereOnce) {
  Error error(ErrorCode::corrupt, "the chunk is short");
  EXPECT_STREQ(error.what(), "the chunk is short");
  error.at("t2m/0.0").at("elsewhere");
  EXPECT_STREQ(error.what(), "the chunk is short (t2m/0.0)");
}

TEST(ToErrno, StoreFailuresAreEio) {
  EXPECT_EQ(to_errno(ErrorCode::corrupt), EIO);
  EXPECT_EQ(to_errno(ErrorCode::io), EIO);
  EXPECT_EQ(to_errno(ErrorCode::not_found), ENOENT);
  EXPECT_EQ(to_errno(ErrorCode::timed_out), ETIMEDOUT);
}

}  // namespace
}  // namespace batchfs

#define FUSE_USE_VERSION 314
#include "fs/fuse/fuse_log.h"

#include <string>

#include <fuse3/fuse_log.h>
#include <gmock/gmock.h>

namespace batchfs {
namespace fuse_log_test {

using testing::HasSubstr;

TEST(FuseLog, MessagesGoToTheLogAndErrorsAreKept) {
  Log log;
  const FuseLog messages(log);
  EXPECT_EQ(messages.errors(), "");
  fuse_log(FUSE_LOG_DEBUG, "nothing of interest\n");
  fuse_log(FUSE_LOG_ERR, "fuse: failed to allocate %s\n", "worker structure");
  fuse_log(FUSE_LOG_ERR, "fuse: and another\n");
  EXPECT_EQ(messages.errors(), "failed to allocate worker structure; and another");
  EXPECT_THAT(log.text(), HasSubstr("libfuse: failed to allocate worker structure\n"));
}

TEST(FuseLog, KeepsLittle) {
  Log log;
  const FuseLog messages(log);
  for (int i = 0; i < 100; ++i) fuse_log(FUSE_LOG_ERR, "%s", std::string(300, 'x').c_str());
  EXPECT_LE(messages.errors().size(), 1100u);
}

TEST(FuseLog, NothingIsTakenAfterItsEnd) {
  Log log;
  { const FuseLog messages(log); }
  fuse_log(FUSE_LOG_ERR, "too late\n");
  EXPECT_EQ(log.text(), "");
}

}  // namespace fuse_log_test
}  // namespace batchfs

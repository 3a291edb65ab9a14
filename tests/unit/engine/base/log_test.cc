#include "engine/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchfs {
namespace {

TEST(Log, KeepsLinesAtOrAboveItsLevel) {
  Log log(false, LogLevel::info);
  log.debug("hidden");
  log.info("chunk {} is fine");  // braces are text, not a format
  log.error("t2m/3.0.0: corrupt");
  EXPECT_THAT(log.text(), testing::HasSubstr("info chunk {} is fine\n"));
  EXPECT_THAT(log.text(), testing::HasSubstr("error t2m/3.0.0: corrupt\n"));
  EXPECT_THAT(log.text(), testing::Not(testing::HasSubstr("hidden")));
}

}  // namespace
}  // namespace batchfs

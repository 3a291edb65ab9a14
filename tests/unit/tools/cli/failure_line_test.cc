#include "tools/cli/failure_line.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "engine/base/json.h"

namespace batchfs {
namespace failure_line_test {

class FailureLine : public testing::Test {
 protected:
  ~FailureLine() override { ::unsetenv("BATCHFS_ERRORS"); }
};

TEST_F(FailureLine, IsASentenceForPeople) {
  ::unsetenv("BATCHFS_ERRORS");
  EXPECT_EQ(failure_line("plan", "not_found", "no such file (x)"),
            "batchfs: plan failed: no such file (x)\n");
  ::setenv("BATCHFS_ERRORS", "text", 1);
  EXPECT_EQ(failure_line("plan", "not_found", "a\nb"), "batchfs: plan failed: a b\n");
}

TEST_F(FailureLine, IsJsonForPrograms) {
  ::setenv("BATCHFS_ERRORS", "json", 1);
  const std::string line = failure_line("serve", name_of(ErrorCode::not_found), "\"a\"\n\xff\x1b");
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json json = parse_json(line, "");
  EXPECT_EQ(json.at("command"), "serve");
  EXPECT_EQ(json.at("code"), "not_found");
  EXPECT_EQ(json.at("message"), "\"a\" \\xff\\x1b");
}

TEST_F(FailureLine, IsOfBoundedLength) {
  for (const char* form : {"text", "json"}) {
    ::setenv("BATCHFS_ERRORS", form, 1);
    EXPECT_LT(failure_line("plan", "not_found", std::string(2'000'000, 'x')).size(), 2300u);
  }
}

TEST_F(FailureLine, EveryCodeHasAName) {
  EXPECT_STREQ(name_of(ErrorCode::invalid_argument), "invalid_argument");
  EXPECT_STREQ(name_of(ErrorCode::internal), "internal");
  for (int code = 0; code < static_cast<int>(ErrorCode::internal); ++code)
    EXPECT_STRNE(name_of(static_cast<ErrorCode>(code)), "internal");
}

}  // namespace failure_line_test
}  // namespace batchfs

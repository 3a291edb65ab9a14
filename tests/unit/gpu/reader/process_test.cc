#include "gpu/reader/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batchfs::reader {
namespace process_test {

TEST(Process, AChildIsAnother) {
  EXPECT_EQ(this_process(), ::getpid());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(this_process() == ::getpid() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(this_process(), ::getpid());
}

}  // namespace process_test
}  // namespace batchfs::reader

#include "tools/service/inherited_descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batchfs {
namespace inherited_descriptors_test {

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

TEST(InheritedDescriptors, AllButTheKeptOnesAreClosed) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const int descriptor : {10, 11, 12, 40, 900})
      if (::dup2(STDERR_FILENO, descriptor) < 0) ::_exit(1);
    close_inherited_descriptors({40, 11, -1, 11, 2, 5000});
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, 11, 40})
      if (!is_open(descriptor)) ::_exit(2);
    for (int descriptor = STDERR_FILENO + 1; descriptor < 1000; ++descriptor)
      if (descriptor != 11 && descriptor != 40 && is_open(descriptor)) ::_exit(3);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(InheritedDescriptors, PathsMayNameThem) {
  EXPECT_THAT(descriptors_in({"/dev/fd/63", "view.json", "/proc/self/fd/5", "/dev/fd/x", "/dev/fd/",
                              "/dev/fd/99999999999"}),
              testing::ElementsAre(63, 5));
}

}  // namespace inherited_descriptors_test
}  // namespace batchfs

#include "tools/service/reader_watch.h"

#include <functional>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batchfs {
namespace reader_watch_test {

/// The exit status of a fork that runs `body`; 14 (SIGALRM) above 128 when it hangs.
int status_of(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    body();
    ::_exit(0);
  }
  int status = -1;
  if (::waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ReaderWatch, EndsTheProcessWithThePipesReader) {
  EXPECT_EQ(status_of([] {
              int ends[2];
              if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(2);
              const ReaderWatch watch(ends[1]);
              ::close(ends[0]);
              ::pause();
            }),
            1);
}

TEST(ReaderWatch, EndsTheProcessWithTheSocketsPeer) {
  EXPECT_EQ(status_of([] {
              int ends[2];
              if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) ::_exit(2);
              const ReaderWatch watch(ends[1]);
              ::close(ends[0]);
              ::pause();
            }),
            1);
}

TEST(ReaderWatch, EndsNothingOnceItIsGone) {
  EXPECT_EQ(status_of([] {
              int ends[2];
              if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(2);
              { const ReaderWatch watch(ends[1]); }
              ::close(ends[0]);
            }),
            0);
}

TEST(ReaderWatch, AFileHasNoReaders) {
  EXPECT_EQ(status_of([] {
              const Descriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
              const ReaderWatch watch(null.get());
              ::usleep(50'000);
            }),
            0);
}

}  // namespace reader_watch_test
}  // namespace batchfs

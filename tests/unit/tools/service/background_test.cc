#include "tools/service/background.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batchfs {
namespace background_test {

TEST(Background, ReturnsWhenTheProcessIsReady) {
  const pid_t caller = ::getpid();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Descriptor read_end(ends[0]), write_end(ends[1]);
  run_in_background(
      [&](StartReport& report) {
        report.enter_daemon();
        report.ready();
        const char own = ::getpid() != caller ? 'y' : 'n';
        if (::write(write_end.get(), &own, 1) != 1) ::_exit(2);
      },
      {write_end.get()});
  write_end = Descriptor();
  char text[2];
  EXPECT_EQ(::read(read_end.get(), text, sizeof text), 1) << "it outlives the report";
  EXPECT_EQ(text[0], 'y');
  int status = -1;
  EXPECT_GT(::wait(&status), 0);
  EXPECT_EQ(status, 0);
}

TEST(Background, ThrowsWhatTheProcessEndedWith) {
  try {
    run_in_background([](StartReport&) { throw Error(ErrorCode::not_found, "no such store", "x"); },
                      {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(error.why(), "no such store");
  }
  ::wait(nullptr);
}

TEST(Background, KeepsOnlyTheDescriptorsThatItIsGiven) {
  const int kept = ::open("/dev/null", O_RDWR), other = ::open("/dev/null", O_RDWR);
  EXPECT_NO_THROW(run_in_background(
      [&](StartReport& report) {
        if (::fcntl(kept, F_GETFD) < 0) throw Error(ErrorCode::io, "the kept one is closed");
        if (::fcntl(other, F_GETFD) >= 0) throw Error(ErrorCode::io, "the other one is open");
        report.ready();
      },
      {kept}));
  ::close(kept);
  ::close(other);
  ::wait(nullptr);
}

}  // namespace background_test
}  // namespace batchfs

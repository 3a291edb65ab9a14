#include "tools/service/start_report.h"

#include <cstdlib>
#include <functional>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace batchfs {
namespace start_report_test {

using State = StartReport::State;

/// A report from a separate process, which a test may split further, and its reader.
class StartReports : public testing::Test {
 protected:
  StartReports() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
  }

  /// Runs `body` in a fork, which exits with 0 when it returns true. Waits for the fork unless it
  /// is to run on; the report's other end is then only there.
  pid_t in_fork(const std::function<bool(StartReport&)>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      read_ = Descriptor();
      ::alarm(20);
      StartReport report(std::move(write_), Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)));
      ::_exit(body(report) ? 0 : 1);
    }
    write_ = Descriptor();
    return pid;
  }
  static int exit_status(pid_t pid) {
    int status = -1;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Descriptor read_, write_;
};

TEST_F(StartReports, ADaemonThatIsReadyLeavesTheTerminalAndTheCommandReturns) {
  const pid_t pid = in_fork([](StartReport& report) {
    report.enter_daemon();
    if (report.state() != State::daemon) return false;
    report.ready();
    char directory[8] = "";
    return report.state() == State::reported && ::getsid(0) == ::getpid() &&
           ::getcwd(directory, sizeof directory) != nullptr && directory == std::string("/");
  });
  EXPECT_NO_THROW(StartReport::wait(std::move(read_)));
  EXPECT_EQ(exit_status(pid), 0);
}

TEST_F(StartReports, TheCommandThrowsTheErrorOfADaemonThatFails) {
  const pid_t pid = in_fork([](StartReport& report) {
    report.enter_daemon();
    report.fail(Error(ErrorCode::not_found, "no such store", "memory://x"));
    return report.state() == State::reported;
  });
  try {
    StartReport::wait(std::move(read_));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(error.why(), "no such store");
    EXPECT_EQ(error.where(), "memory://x");
  }
  EXPECT_EQ(exit_status(pid), 0);
}

TEST_F(StartReports, AnEndWithoutAReportIsAnError) {
  const pid_t pid = in_fork([](StartReport&) { return true; });
  EXPECT_THROW(StartReport::wait(std::move(read_)), Error);
  EXPECT_EQ(exit_status(pid), 0);
}

TEST_F(StartReports, TheDaemonOfASupervisorReports) {
  const pid_t pid = in_fork([](StartReport& report) {
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      report.enter_daemon();
      report.ready();
      ::_exit(0);
    }
    report.leave_to_daemon();
    const bool left = report.state() == State::supervisor && ::getsid(0) == ::getpid();
    return left && exit_status(daemon) == 0;
  });
  EXPECT_NO_THROW(StartReport::wait(std::move(read_)));
  EXPECT_EQ(exit_status(pid), 0);
}

TEST_F(StartReports, ADaemonThatTakesOverHasNobodyToReportTo) {
  const pid_t pid = in_fork([](StartReport& report) {
    report.leave_to_daemon();  // its first daemon has died without a word
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      report.enter_daemon();
      const bool takes_over = report.state() == State::takeover;
      report.fail(Error(ErrorCode::io, "not told"));
      report.ready();
      ::_exit(takes_over && report.state() == State::reported && ::getsid(0) == ::getpid() ? 0 : 1);
    }
    return exit_status(daemon) == 0;
  });
  EXPECT_THROW(StartReport::wait(std::move(read_)), Error);
  EXPECT_EQ(exit_status(pid), 0);
}

TEST_F(StartReports, ADaemonEndsWithTheCommandThatWaitsForIt) {
  const pid_t pid = in_fork([](StartReport& report) {
    report.enter_daemon();
    for (;;) ::pause();
    return true;
  });
  read_ = Descriptor();
  EXPECT_EQ(exit_status(pid), 1);
}

TEST_F(StartReports, InTheForegroundNothingIsReported) {
  StartReport report;
  EXPECT_EQ(report.state(), State::reported);
  report.leave_to_daemon();
  report.enter_daemon();
  report.ready();
  report.fail(Error(ErrorCode::io, "not told"));
  EXPECT_EQ(report.state(), State::reported);
}

}  // namespace start_report_test
}  // namespace batchfs

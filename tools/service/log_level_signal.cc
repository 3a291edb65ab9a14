#include "tools/service/log_level_signal.h"

#include <string>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "engine/base/blocked_signals.h"
#include "engine/base/system_error.h"

namespace batchfs {

namespace {

int block_and_open() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kLogLevelSignal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return opened(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

}  // namespace

LogLevelSignal::LogLevelSignal(Log& log)
    : log_(log), signals_(block_and_open()), stop_(opened(::eventfd(0, EFD_CLOEXEC), "eventfd")) {
  const BlockedSignals blocked;  // the thread that waits for the other signals may start later
  thread_ = std::thread([this] { run(); });
}

LogLevelSignal::~LogLevelSignal() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_, &one, sizeof one);  // a counter takes it
  thread_.join();
  ::close(stop_);
  ::close(signals_);
}

void LogLevelSignal::run() {
  pollfd ends[] = {{signals_, POLLIN, 0}, {stop_, POLLIN, 0}};
  for (;;) {
    if (::poll(ends, 2, -1) < 0) continue;  // interrupted
    if (ends[1].revents != 0) return;
    signalfd_siginfo signal{};
    if (::read(signals_, &signal, sizeof signal) != sizeof signal) continue;
    const bool has_value = signal.ssi_code == SI_QUEUE && signal.ssi_int >= 0 &&
                           signal.ssi_int <= static_cast<int>(LogLevel::error);
    const LogLevel level = has_value                         ? static_cast<LogLevel>(signal.ssi_int)
                           : log_.level() == LogLevel::debug ? LogLevel::info
                                                             : LogLevel::debug;
    log_.set_level(LogLevel::info);  // so that the log records the change in any case
    log_.info("the log's level is " + std::string(log_level_name(level)) + " from now on");
    log_.set_level(level);
  }
}

}  // namespace batchfs

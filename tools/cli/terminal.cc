#include "tools/cli/terminal.h"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "tools/cli/command.h"

namespace batchfs {

namespace {

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";  // alternate screen, no cursor, empty
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Terminal::Terminal() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1 ||
      ::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw UsageError{"standard output is not a terminal; use --once or --json"};
  const sigset_t set = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw Error(ErrorCode::io, "signals cannot be waited for", "signalfd");
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);  // Ctrl-C is a key
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write(kEnter);
}

Terminal::~Terminal() {
  write(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  ::close(signals_);
}

Terminal::Size Terminal::size() const {
  winsize size{};
  const bool known =
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return known ? Size{size.ws_col, size.ws_row} : Size{80, 24};
}

void Terminal::draw(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";  // overwrites from the top: no flicker
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i] + "\x1b[K";
  write(text + "\x1b[J");
}

Terminal::Input Terminal::wait(std::chrono::milliseconds longest, int other) {
  pollfd ends[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}, {other, POLLIN, 0}};
  if (::poll(ends, 3, static_cast<int>(longest.count())) < 0) return {};
  signalfd_siginfo signal{};
  if (ends[1].revents != 0 && ::read(signals_, &signal, sizeof signal) == sizeof signal)
    return {signal.ssi_signo == SIGWINCH ? Event::resized : Event::ended};
  if (ends[0].revents != 0) {
    char key = 0;
    return ::read(STDIN_FILENO, &key, 1) == 1 ? Input{Event::key, key} : Input{Event::ended};
  }
  return {};
}

void Terminal::write(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return;  // the terminal is gone: wait() will report it
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

}  // namespace batchfs

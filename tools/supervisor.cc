#include "tools/supervisor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "fs/session_state.h"
#include "fs/unmount.h"

namespace batchfs {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Ends that count against a daemon: of its own doing, or before it served. A kill from outside is no fault of its.
constexpr std::size_t kMostEnds = 5;
constexpr std::chrono::seconds kEndsWithin{60};
/// Readers wait for a daemon that does not get ready for this long, then for no other.
constexpr std::chrono::seconds kLongestPause{60};
constexpr milliseconds kFirstDelay{100};  // before another start after such an end; doubled each time
/// What a daemon that was told to end has for it.
constexpr std::chrono::seconds kEnding{15};

/// What the daemon tells, the first byte of a packet.
constexpr char kMounted = 'm', kReady = 'r', kFailed = 'e';

void send_packet(int socket, std::string_view text, int descriptor = -1) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  // A supervisor that is gone needs to know nothing.
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {}
}

struct Packet {
  std::string text;
  int descriptor = -1;
};

/// Nothing when there is none now.
std::optional<Packet> receive_packet(int socket) {
  std::array<char, 4096> text;
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size <= 0) return std::nullopt;
  Packet packet{{text.data(), static_cast<std::size_t>(size)}, -1};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header))
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&packet.descriptor, CMSG_DATA(header), sizeof packet.descriptor);
  return packet;
}

bool is_request_to_end(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP; }

sigset_t supervisor_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options) : options_(options), state_(SessionState::create()) {
    const sigset_t signals = supervisor_signals();
    sigprocmask(SIG_BLOCK, &signals, &old_signals_);
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) throw Error(ErrorCode::io, std::strerror(errno), "signalfd");
  }

  Supervised run(const std::function<void()>& in_supervisor) {
    for (bool first = true;; first = false) {
      int ends[2] = {-1, -1};
      daemon_ = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 ? ::fork() : -1;
      if (daemon_ < 0 && first) throw Error(ErrorCode::io, std::strerror(errno), "starting the daemon");
      if (daemon_ == 0) {
        ::close(ends[0]);
        ::close(signals_);
        sigprocmask(SIG_SETMASK, &old_signals_, nullptr);
        return {first, state_, session_, before_, ends[1]};
      }
      ::close(ends[1]);
      channel_ = ends[0];
      ready_ = false;
      why_.clear();
      if (first) in_supervisor();
      const int status = daemon_ < 0 ? W_EXITCODE(1, 0) : watch();
      after(status);
      ::close(channel_);
    }
  }

 private:
  /// Until the daemon has ended. Returns its wait status.
  int watch() {
    for (;;) {
      pollfd events[] = {{signals_, POLLIN, 0}, {channel_, POLLIN, 0}};
      const int timeout = ends_by_ ? static_cast<int>(std::max<std::int64_t>(left(*ends_by_).count(), 0)) : -1;
      if (::poll(events, 2, timeout) == 0) {
        ::kill(daemon_, SIGKILL);
        ends_by_ = Clock::now() + kEnding;
      }
      hear();
      if ((events[1].revents & POLLHUP) != 0) {
        // The daemon has closed it by ending; its end comes as a signal.
        pollfd signal{signals_, POLLIN, 0};
        ::poll(&signal, 1, timeout);
      }
      if (take_signals()) ::kill(daemon_, SIGTERM);
      int status = 0;
      if (::waitpid(daemon_, &status, WNOHANG) == daemon_) {
        hear();
        return status;
      }
    }
  }

  /// What the daemon tells.
  void hear() {
    while (const auto packet = receive_packet(channel_)) {
      switch (packet->text[0]) {
        case kMounted:
          session_ = packet->descriptor;
          break;
        case kReady:
          ready_ = was_ready_ = true;
          down_since_.reset();
          lasting_ = packet->text.size() > 1 && packet->text[1] == '+';
          break;
        case kFailed:
          why_ = packet->text.substr(1);
          break;
        default:
          break;
      }
    }
  }

  /// Was this process told to end? True once.
  bool take_signals() {
    bool told = false;
    signalfd_siginfo signal;
    while (::read(signals_, &signal, sizeof signal) == sizeof signal)
      told |= is_request_to_end(static_cast<int>(signal.ssi_signo));
    if (told) ends_by_ = Clock::now() + kEnding;
    return told;
  }

  /// Decides what follows the daemon's end: returns when another is to be started.
  void after(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ::_exit(0);
    const std::string end = why_.empty() ? describe(status) : "gave up: " + why_;
    if (!was_ready_) {  // whoever mounts is told by the daemon
      end_mount();
      ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    if (ends_by_ || (WIFSIGNALED(status) && is_request_to_end(WTERMSIG(status)))) {
      end_mount();
      ::_exit(0);
    }
    if (has_session_ended(session_)) ::_exit(0);
    const auto now = Clock::now();
    if (!down_since_) down_since_ = now;
    if (!ready_ || !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) ends_.push_back(now);
    while (!ends_.empty() && now - ends_.front() > kEndsWithin) ends_.pop_front();
    if (!options_.restart || !lasting_)
      give_up(fmt::format("the daemon {}", end));
    if (ends_.size() >= kMostEnds)
      give_up(fmt::format("the daemon ended {} times within a minute and is not started again; the last one {}", ends_.size(), end));
    if (!ready_ && now - *down_since_ >= kLongestPause)
      give_up(fmt::format("no daemon got ready for {} seconds; the last one {}", kLongestPause.count(), end));
    before_ = end;
    say(fmt::format("the daemon {}; another takes over", end), false);
    if (ready_) return;
    pollfd signal{signals_, POLLIN, 0};
    const auto delay_over = now + kFirstDelay * (1 << (ends_.size() - 1));
    while (left(delay_over).count() > 0) {
      ::poll(&signal, 1, static_cast<int>(left(delay_over).count()));
      if (!take_signals()) continue;
      end_mount();
      ::_exit(0);
    }
  }

  [[noreturn]] void give_up(const std::string& why) {
    say(why + "; the mount has ended", true);
    end_mount();
    ::_exit(1);
  }

  /// Ends the session, so that nobody waits for an answer any more, and the mount.
  void end_mount() {
    if (session_ < 0) return;
    const bool was_mounted = !has_session_ended(session_);
    ::close(std::exchange(session_, -1));
    if (!was_mounted) return;
    try {
      unmount(options_.mountpoint, true);
    } catch (const Error& error) {
      say(std::string("unmounting failed: ") + error.what(), true);
    }
  }

  void say(const std::string& what, bool is_error) const {
    const std::string line = fmt::format("batchfs: {}: {}", options_.mountpoint, what);
    if (options_.foreground) {
      const std::string text = line + "\n";
      [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    } else {
      ::syslog(LOG_DAEMON | (is_error ? LOG_ERR : LOG_WARNING), "%s", line.c_str());
    }
  }

  static milliseconds left(Clock::time_point end) {
    return std::chrono::ceil<milliseconds>(end - Clock::now());
  }

  const SupervisorOptions options_;
  const int state_;
  sigset_t old_signals_;
  int signals_ = -1;
  int session_ = -1;
  int channel_ = -1;
  pid_t daemon_ = -1;
  bool was_ready_ = false, ready_ = false;  // any daemon; this one
  bool lasting_ = false;
  std::string why_, before_;
  std::deque<Clock::time_point> ends_;          // that count, of the last minute
  std::optional<Clock::time_point> down_since_; // no daemon has been ready
  std::optional<Clock::time_point> ends_by_;    // this was told to end
};

}  // namespace

void Supervised::mounted(int session_descriptor) const { send_packet(channel, std::string(1, kMounted), session_descriptor); }

void Supervised::ready(bool lasting) const { send_packet(channel, std::string{kReady, lasting ? '+' : '-'}); }

void Supervised::failed(const std::string& why) const { send_packet(channel, kFailed + why.substr(0, 1000)); }

Supervised supervise(const SupervisorOptions& options, const std::function<void()>& in_supervisor) {
  return Supervisor(options).run(in_supervisor);
}

}  // namespace batchfs

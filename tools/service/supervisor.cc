#include "tools/service/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
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
#include "engine/base/printable.h"
#include "engine/base/service_manager.h"
#include "engine/base/system_error.h"
#include "fs/fuse/unmount.h"
#include "fs/session_state.h"
#include "tools/cli/silence.h"
#include "tools/service/last_words.h"
#include "tools/service/packets.h"
#include "tools/service/restarts.h"
#include "tools/service/stored_descriptors.h"
#include "tools/service/takeover.h"

namespace batchfs {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Interval for checks of a daemon that is silent.
constexpr milliseconds kGlance{500};
/// Time for a daemon to end when asked to.
constexpr std::chrono::seconds kTimeToEnd{15};

/// Names of the descriptors that systemd keeps.
constexpr char kSessionName[] = "batchfs-session", kStateName[] = "batchfs-state";

/// Messages of the daemon, the first byte of a packet.
constexpr char kMounted = 'm', kTurn = 't', kDaemonReady = 'r', kServed = 's', kDaemonFailed = 'e',
               kEnded = 'x', kAlive = 'a', kEnding = 'q';

bool is_request_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

sigset_t supervisor_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options) : options_(options) {
    if (options.replace) {
      const TakenSession taken = ask_for_session(options.mountpoint);
      session_ = taken.session;
      state_ = taken.state;
      predecessor_ = taken.predecessor;
    } else {
      take_stored();
      if (session_ < 0) state_ = SessionState::create();
    }
    const sigset_t signals = supervisor_signals();
    sigprocmask(SIG_BLOCK, &signals, &old_signals_);
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) throw Error(ErrorCode::io, describe_system_error(errno), "signalfd");
  }

  Supervised run(StartReport& report) {
    for (bool first = true;; first = false) {
      int ends[2] = {-1, -1};
      daemon_ = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 ? ::fork() : -1;
      if (daemon_ < 0 && first)
        throw Error(ErrorCode::io,
                    errno == EAGAIN ? describe_thread_limit() : describe_system_error(errno),
                    "starting the daemon");
      if (daemon_ == 0) {
        ::close(ends[0]);
        for (const int own : {signals_, listener_, successor_})
          if (own >= 0) ::close(own);
        sigprocmask(SIG_SETMASK, &old_signals_, nullptr);
        set_last_words(ends[1], kDaemonFailed + std::string("out of memory"));
        report.enter_daemon();
        return {state_, session_, before_, ends[1], predecessor_};
      }
      ::close(ends[1]);
      channel_ = ends[0];
      ready_ = served_ = hung_ = probed_ = false;
      silence_.heard();
      why_.clear();
      if (first) report.leave_to_daemon();
      const int status = daemon_ < 0 ? W_EXITCODE(1, 0) : watch();
      after(status);
      ::close(channel_);
    }
  }

 private:
  /// Takes over a session whose supervisor was killed, and whose descriptors systemd has kept.
  void take_stored() {
    StoredDescriptors stored;
    const int session = stored.take(kSessionName), state = stored.take(kStateName);
    if (session >= 0 && state >= 0 && !has_session_ended(session)) {
      session_ = session;
      state_ = state;
      return;
    }
    for (const int descriptor : {session, state})
      if (descriptor >= 0) ::close(descriptor);
  }

  void store_descriptors() const {
    if (!options_.restart || !lasting_) return;
    for (const auto& [name, descriptor] :
         {std::pair{kSessionName, session_}, std::pair{kStateName, state_}})
      notify_service_manager(fmt::format("FDSTORE=1\nFDNAME={}", name), {&descriptor, 1});
  }

  void forget_stored() const {
    for (const char* name : {kSessionName, kStateName})
      notify_service_manager(fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name));
  }

  /// The wait status of a daemon that has died with a thread that cannot end before it has an
  /// answer of the mount itself (the watchdog's), so that waitpid(2) does not report it yet;
  /// nullopt for any other. The next daemon gives the answer. A crash that writes a core waits for
  /// such a thread, too; readers need not wait for the core.
  std::optional<int> stuck() const {
    std::ifstream file(fmt::format("/proc/{}/stat", daemon_));
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= line.size()) return std::nullopt;
    if (line[name_end + 2] == 'Z') return W_EXITCODE(0, SIGKILL);
    if (!is_set("CoreDumping:")) return std::nullopt;
    // The last field, exit_code: the signal. 0 if the kernel does not report it.
    const int signal = std::atoi(line.c_str() + line.rfind(' ')) & 0x7f;
    return W_EXITCODE(0, signal != 0 ? signal : SIGABRT);
  }

  /// Is a number of /proc/PID/status not 0?
  bool is_set(std::string_view name) const {
    std::ifstream file(fmt::format("/proc/{}/status", daemon_));
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(name)) return line.find_first_of("123456789") != std::string::npos;
    return false;
  }

  /// Kills a daemon that has been silent for too long.
  void end_hang() {
    hung_ = true;
    ::kill(daemon_, SIGKILL);
  }

  /// Watches the daemon until it ends. Returns its wait status.
  int watch() {
    for (;;) {
      pollfd events[] = {{signals_, POLLIN, 0},
                         {channel_, POLLIN, 0},
                         {listener_, POLLIN, 0},
                         {successor_, POLLIN, 0}};
      const auto pause = ends_by_ ? std::clamp(left(*ends_by_), milliseconds(0), kGlance) : kGlance;
      const bool nothing = ::poll(events, std::size(events), static_cast<int>(pause.count())) == 0;
      if (ends_by_ && left(*ends_by_).count() <= 0) {
        ::kill(daemon_, SIGKILL);
        ends_by_ = Clock::now() + kTimeToEnd;
      }
      hear();
      // A debugger may stop the daemon for any time; the time in the debugger does not count
      // afterwards, either.
      const bool held = probed_ && is_set("TracerPid:");
      if (held) silence_.heard();
      silence_.look(Clock::now(), probed_ && !held);
      if (!hung_ && silence_.length() > options_.hang_timeout) end_hang();
      if ((events[1].revents & POLLHUP) != 0) {
        // The daemon's end closed the channel; the signal of its end follows.
        pollfd signal{signals_, POLLIN, 0};
        ::poll(&signal, 1, static_cast<int>(kGlance.count()));
      }
      if (events[3].revents != 0) hear_successor();
      if (events[2].revents != 0) meet_successor();
      if (take_signals()) ::kill(daemon_, SIGTERM);
      int status = 0;
      for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        if (ended != daemon_) continue;  // one that was stuck
        hear();
        return status;
      }
      if (nothing)
        if (const auto died = stuck()) return *died;
    }
  }

  /// Handles the daemon's messages.
  void hear() {
    while (auto packet = receive_packet(channel_)) {
      switch (packet->text[0]) {
        case kMounted:
          if (!packet->descriptors.empty()) session_ = packet->descriptors[0].release();
          break;
        case kTurn:
          asked_for_turn_ = true;
          break;
        case kDaemonReady:
          lasting_ = packet->text.size() > 1 && packet->text[1] == '+';
          if (!was_ready_) store_descriptors();
          ready_ = was_ready_ = true;
          probed_ = options_.hang_timeout.count() > 0;
          silence_.heard();
          restarts_.got_ready();
          if (predecessor_ >= 0) ::close(std::exchange(predecessor_, -1));
          if (listener_ < 0) listener_ = listen_for_successor(options_.mountpoint);
          break;
        case kAlive:
          silence_.heard();
          break;
        case kEnding:
          probed_ = false;
          break;
        case kServed:
          served_ = true;
          break;
        case kEnded:
          ended_ = true;
          forget_stored();
          if (session_ >= 0) ::close(std::exchange(session_, -1));
          break;
        case kDaemonFailed:
          why_ = packet->text.substr(1);
          break;
        default:
          break;
      }
    }
  }

  void meet_successor() {
    const int connection = accept_successor(listener_);
    if (connection < 0) return;
    if (successor_ < 0 && lasting_ && send_packet(connection, "session", {session_, state_})) {
      successor_ = connection;
      return;
    }
    send_packet(connection, lasting_ ? "it is being replaced already"
                                     : "the kernel cannot send a mount's requests again (it is "
                                       "older than Linux 6.9); unmount it and mount again");
    ::close(connection);
  }

  /// The successor takes over, or has disconnected.
  void hear_successor() {
    const auto packet = receive_packet(successor_);
    if (!packet || packet->text != kGo) {
      ::close(std::exchange(successor_, -1));
      return;
    }
    // The kernel resends all requests that the daemon has not answered.
    ::kill(daemon_, SIGKILL);
    while (::waitpid(daemon_, nullptr, 0) < 0 && errno == EINTR) {
    }
    stop_listening(std::exchange(listener_, -1));  // the successor listens there when it serves
    forget_stored();
    send_packet(successor_, kGone);
    say("another supervisor takes over", false);
    leave(0);
  }

  /// Has the supervisor that had the session ended? Then the session is kept. When asked to, that
  /// supervisor ends at once.
  bool is_predecessor_gone() const {
    pollfd connection{predecessor_, 0, 0};
    return asked_for_turn_ &&
           ::poll(&connection, 1, static_cast<int>(milliseconds(kTimeToEnd).count())) == 1;
  }

  /// Was this process asked to end? True once.
  bool take_signals() {
    bool told = false;
    signalfd_siginfo signal;
    while (::read(signals_, &signal, sizeof signal) == sizeof signal)
      told |= is_request_to_end(static_cast<int>(signal.ssi_signo));
    if (told) ends_by_ = Clock::now() + kTimeToEnd;
    return told;
  }

  /// Handles the daemon's end. Returns if another daemon is to be started.
  void after(int status) {
    if (ended_ || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
      forget_stored();
      leave(0);
    }
    const std::string end =
        hung_ ? fmt::format("did not answer for {:g} seconds", options_.hang_timeout.count())
        : why_.empty() ? describe(status)
                       : "gave up: " + why_;
    if (predecessor_ >= 0) {
      if (!is_predecessor_gone())
        leave(WIFEXITED(status) ? WEXITSTATUS(status) : 1);  // the predecessor continues to serve
      ::close(std::exchange(predecessor_, -1));
      was_ready_ = lasting_ = true;
    }
    if (!was_ready_) {  // the daemon itself reports to the mounting command
      end_mount();
      if (ends_by_ && WIFSIGNALED(status)) end_by(WTERMSIG(status));
      leave(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    if (ends_by_ || (WIFSIGNALED(status) && is_request_to_end(WTERMSIG(status)))) {
      end_mount();
      leave(0);
    }
    if (has_session_ended(session_)) {
      forget_stored();
      leave(0);
    }
    if (!options_.restart || !lasting_) give_up(fmt::format("the daemon {}", end));
    const auto now = Clock::now();
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (const auto why = restarts_.ended(
            {.how = end, .ready = ready_, .served = served_, .killed = killed, .hung = hung_}, now))
      give_up(*why);
    before_ = end;
    say(fmt::format("the daemon {}; another takes over", end), false);
    pollfd signal{signals_, POLLIN, 0};
    const auto delay_over = now + restarts_.delay();
    while (left(delay_over).count() > 0) {
      ::poll(&signal, 1, static_cast<int>(left(delay_over).count()));
      if (!take_signals()) continue;
      end_mount();
      leave(0);
    }
  }

  /// Ends by the same signal as the daemon, which was meant for both.
  static void end_by(int signal) {
    const sigset_t signals = supervisor_signals();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  }

  [[noreturn]] void leave(int status) {
    stop_listening(listener_);
    ::_exit(status);
  }

  [[noreturn]] void give_up(const std::string& why) {
    say(why + "; the mount has ended", true);
    end_mount();
    leave(1);
  }

  /// Ends the session, so that no reader waits for an answer any more, and the mount.
  void end_mount() {
    if (session_ < 0) return;
    forget_stored();
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
    const std::string line = printable(fmt::format("batchfs: {}: {}", options_.mountpoint, what));
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
  int state_ = -1;
  sigset_t old_signals_;
  int signals_ = -1;
  int session_ = -1;
  int channel_ = -1;
  int listener_ = -1, successor_ = -1;
  int predecessor_ = -1;  // until a daemon of ours serves
  bool asked_for_turn_ = false;
  pid_t daemon_ = -1;
  bool was_ready_ = false, ready_ = false;  // any daemon; this one
  bool served_ = false;                     // this one
  bool lasting_ = false, ended_ = false;
  bool probed_ = false,
       hung_ = false;  // this daemon: it gives signs of life; it did not, and was killed
  Silence silence_{2 * kGlance};
  std::string why_, before_;
  Restarts restarts_;
  std::optional<Clock::time_point> ends_by_;  // set when this process was asked to end
};

}  // namespace

void Supervised::take_turn() const {
  if (predecessor < 0) return;
  send_packet(channel, std::string(1, kTurn));
  // From now on the service manager follows this supervisor (`systemctl reload`): the predecessor's
  // end is not the end of the service.
  notify_service_manager(fmt::format("MAINPID={}", ::getppid()));
  const bool asked = send_packet(predecessor, kGo);
  const auto answer = asked ? receive_packet(predecessor, true) : std::nullopt;
  ::close(predecessor);
  if (!answer || answer->text != kGone)
    throw Error(ErrorCode::io,
                "the supervisor that has the mount did not let it go; try again, or unmount it and "
                "mount again");
}

void Supervised::mounted(int session_descriptor) const {
  send_packet(channel, std::string(1, kMounted), {session_descriptor});
}

void Supervised::ready(bool lasting) const {
  send_packet(channel, std::string{kDaemonReady, lasting ? '+' : '-'});
}

void Supervised::alive() const {
  // Does not wait: a stopped supervisor receives enough of them.
  ::send(channel, &kAlive, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Supervised::ending() const { send_packet(channel, std::string(1, kEnding)); }

void Supervised::served() const { send_packet(channel, std::string(1, kServed)); }

void Supervised::ended() const { send_packet(channel, std::string(1, kEnded)); }

void Supervised::failed(const std::string& why) const {
  send_packet(channel, kDaemonFailed + why.substr(0, 1000));
}

Supervised supervise(const SupervisorOptions& options, StartReport& report) {
  return Supervisor(options).run(report);
}

}  // namespace batchfs

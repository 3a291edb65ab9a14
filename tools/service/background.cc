#include "tools/service/background.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/system_error.h"
#include "tools/service/inherited_descriptors.h"
#include "tools/service/last_words.h"
#include "tools/service/stored_descriptors.h"

namespace batchfs {

namespace {

constexpr char kOutOfMemory[] =
    "out of memory; use a smaller --memory, or raise the limit (ulimit -v)";

/// What the daemon tells: one byte, then for an error its code, why and where, each ended by NUL.
constexpr char kReady = '+', kError = '-';

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;  // nobody waits any more
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int fd) {
  std::string text;
  char block[4096];
  for (;;) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n == 0) return text;
    if (n < 0 && errno != EINTR) return text;
    if (n > 0) text.append(block, static_cast<std::size_t>(n));
  }
}

std::string message(ErrorCode code, const std::string& why, const std::string& where) {
  std::string text(1, kError);
  for (const std::string& part : {std::to_string(static_cast<int>(code)), why, where}) {
    text += part;
    text += '\0';
  }
  return text;
}

/// Away from the terminal, the session and the directory of whoever mounted. Not before the mount
/// is there: autofs(5) lets nobody but the process group of the automounter to the place where it
/// is wanted. The journal's stream is kept, as nobody else reads it. `null`: of /dev/null, opened
/// in advance, since a daemon that keeps the pipes of its caller open would keep the caller
/// waiting. -1: this was done before a fork.
void detach(int null) {
  ::setsid();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (null >= 0 && !is_journal(fd, std::getenv("JOURNAL_STREAM"))) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
  // "/" is always there.
  [[maybe_unused]] const int failed = ::chdir("/");
}

/// Getting ready can take long, and who stops waiting, with Ctrl-C say, wants no mount later: ends
/// this process when nobody reads the report any more.
class WaiterWatch {
 public:
  explicit WaiterWatch(int report)
      : stop_(opened(::eventfd(0, EFD_CLOEXEC), "eventfd")), thread_([this, report] {
          pollfd ends[] = {{report, 0, 0},
                           {stop_, POLLIN, 0}};  // a pipe without a reader has POLLERR
          while (::poll(ends, 2, -1) < 0 && errno == EINTR) {
          }
          if (ends[1].revents == 0 && (ends[0].revents & POLLERR) != 0) ::_exit(1);
        }) {}
  ~WaiterWatch() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        ::write(stop_, &one, sizeof one);  // a counter takes it
    thread_.join();
    ::close(stop_);
  }

 private:
  const int stop_;
  std::thread thread_;
};

[[noreturn]] void be_daemon(int report, int null,
                            const std::function<void(const std::function<void()>& ready)>& serve,
                            const Split& split) noexcept {
  bool reported = false;  // or nobody is there to be told
  std::optional<WaiterWatch> watch;
  const auto tell = [&](const std::string& text) {
    watch.reset();
    if (!reported) set_last_words(report, "");
    if (!reported) write_all(report, text);
    if (!reported) ::close(report);
    reported = true;
  };
  set_last_words(STDERR_FILENO, "");  // the command says it
  set_last_words(report, message(ErrorCode::no_memory, kOutOfMemory, ""));
  try {
    if (split) {
      reported = !split([report, &null] {
        set_last_words(report, "");
        ::close(report);
        detach(std::exchange(null, -1));
      });
    }
    if (reported)
      set_last_words(report, "");
    else
      watch.emplace(report);
    serve([&] {
      detach(std::exchange(null, -1));
      tell(std::string(1, kReady));
    });
    ::_exit(0);
  } catch (...) {
    const Error error = explain(std::current_exception());
    tell(message(error.code(), error.why(), error.where()));
  }
  ::_exit(1);
}

}  // namespace

void run_in_background(const std::function<void(const std::function<void()>& ready)>& serve,
                       std::vector<int> kept, const Split& split) {
  const Descriptor null(opened(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::io, describe_system_error(errno), "pipe");
  const pid_t command = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw Error(ErrorCode::io, errno == EAGAIN ? describe_thread_limit() : std::strerror(errno),
                "fork");
  if (pid == 0) {
    ::close(ends[0]);
    const std::vector<int> stored = StoredDescriptors::hand_on(command);
    kept.insert(kept.end(), stored.begin(), stored.end());
    kept.insert(kept.end(), {ends[1], null.get()});
    close_inherited_descriptors(std::move(kept));
    be_daemon(ends[1], null.get(), serve, split);
  }
  ::close(ends[1]);
  const std::string told = read_all(ends[0]);
  ::close(ends[0]);
  if (!told.empty() && told[0] == kReady) return;
  if (told.empty() || told[0] != kError) {
    throw Error(ErrorCode::internal, "the daemon ended before the mount was ready; -f shows why");
  }
  const std::size_t first = told.find('\0'), second = told.find('\0', first + 1);
  throw Error(static_cast<ErrorCode>(std::stoi(told.substr(1, first - 1))),
              told.substr(first + 1, second - first - 1),
              told.substr(second + 1, told.find('\0', second + 1) - second - 1));
}

}  // namespace batchfs

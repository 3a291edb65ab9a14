#include "tools/service/start_report.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "engine/base/log.h"
#include "engine/base/system_error.h"
#include "tools/service/last_words.h"

namespace batchfs {

namespace {

constexpr char kOutOfMemory[] =
    "out of memory; use a smaller --memory, or raise the limit (ulimit -v)";

/// The report: one byte, then for an error its code, why and where, each ended by NUL.
constexpr char kReady = '+', kError = '-';

std::string message(ErrorCode code, const std::string& why, const std::string& where) {
  std::string text(1, kError);
  for (const std::string& part : {std::to_string(static_cast<int>(code)), why, where}) {
    text += part;
    text += '\0';
  }
  return text;
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

}  // namespace

StartReport::StartReport() : state_(State::reported) {}

StartReport::StartReport(Descriptor pipe, Descriptor null)
    : state_(State::daemon), pipe_(std::move(pipe)), null_(std::move(null)) {
  set_last_words(STDERR_FILENO, "");  // the command prints it
  set_last_words(pipe_.get(), message(ErrorCode::no_memory, kOutOfMemory, ""));
}

StartReport::~StartReport() {
  if (pipe_.get() >= 0) set_last_words(pipe_.get(), "");
}

void StartReport::leave_to_daemon() {
  if (state_ != State::daemon) return;
  state_ = State::supervisor;
  set_last_words(pipe_.get(), "");
  pipe_ = Descriptor();
  detach();
}

void StartReport::enter_daemon() {
  if (state_ == State::supervisor) state_ = State::takeover;
  if (state_ == State::daemon) watch_ = std::make_unique<ReaderWatch>(pipe_.get());
}

void StartReport::ready() {
  if (state_ == State::reported) return;
  detach();
  if (state_ == State::daemon) write(std::string(1, kReady));
  state_ = State::reported;
}

void StartReport::fail(const Error& error) {
  if (state_ == State::daemon) write(message(error.code(), error.why(), error.where()));
}

/// In a takeover, the supervisor has done all but the first step. Not before the mount exists:
/// autofs(5) lets only the process group of the automounter look at the directory that it mounts.
/// Keeps the journal's stream, which nobody else reads. A daemon that kept its caller's pipes open
/// would keep the caller waiting.
void StartReport::detach() {
  ::setsid();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (null_.get() >= 0 && !is_journal(fd, std::getenv("JOURNAL_STREAM"))) ::dup2(null_.get(), fd);
  if (null_.get() <= STDERR_FILENO) null_.release();
  null_ = Descriptor();
  // "/" always exists.
  [[maybe_unused]] const int failed = ::chdir("/");
}

void StartReport::write(const std::string& text) {
  watch_.reset();
  set_last_words(pipe_.get(), "");
  for (std::string_view left = text; !left.empty();) {
    const ssize_t n = ::write(pipe_.get(), left.data(), left.size());
    if (n < 0 && errno != EINTR) break;  // the reader is gone
    if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
  }
  pipe_ = Descriptor();
  state_ = State::reported;
}

void StartReport::wait(Descriptor pipe) {
  const std::string told = read_all(pipe.get());
  if (!told.empty() && told[0] == kReady) return;
  if (told.empty() || told[0] != kError)
    throw Error(ErrorCode::internal,
                "the daemon ended before it was ready; in the foreground (mount -f, serve without "
                "--background) it says why");
  const std::size_t first = told.find('\0'), second = told.find('\0', first + 1);
  throw Error(static_cast<ErrorCode>(std::stoi(told.substr(1, first - 1))),
              told.substr(first + 1, second - first - 1),
              told.substr(second + 1, told.find('\0', second + 1) - second - 1));
}

}  // namespace batchfs

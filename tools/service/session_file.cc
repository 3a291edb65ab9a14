#include "tools/service/session_file.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "fs/session_state.h"

namespace batchfs {

namespace {

const char* const kOption = "--session ";
/// More than the time that a server takes to end (kStopTimeout).
constexpr std::chrono::seconds kEndingTime{15};

Descriptor open_session(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat at;
  if (file.get() < 0 || ::fstat(file.get(), &at) != 0)
    throw Error(errno == EACCES || errno == EROFS ? ErrorCode::access_denied : ErrorCode::io,
                describe_system_error(errno), kOption + path);
  // A process that can write to it decides which objects count as unchanged.
  if (!S_ISREG(at.st_mode) || at.st_uid != ::geteuid() || (at.st_mode & 0077) != 0)
    throw Error(ErrorCode::access_denied,
                "it is not a file that only you can read and write; name another, or remove it",
                kOption + path);
  return file;
}

}  // namespace

SessionFile::SessionFile(std::string path)
    : path_(std::filesystem::absolute(path).lexically_normal().string()),
      file_(open_session(path_)) {
  struct flock serving {};
  serving.l_type = F_WRLCK;
  serving.l_whence = SEEK_SET;
  serving.l_len = 1;  // tables of versions lock other bytes, see version_slots.h
  // A server that is ending accepts no readers any more, and holds the lock until it has ended.
  const auto until = std::chrono::steady_clock::now() + kEndingTime;
  while (::fcntl(file_.get(), F_OFD_SETLK, &serving) != 0) {
    if (std::chrono::steady_clock::now() > until)
      throw Error(ErrorCode::invalid_argument,
                  "another server keeps its session there; end it first", kOption + path_);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (::flock(file_.get(), LOCK_SH) != 0)
    throw Error(ErrorCode::io, describe_system_error(errno), kOption + path_);
  SessionState::prepare(file_.get());
}

SessionFile::~SessionFile() { leave(); }

void SessionFile::leave() {
  if (std::exchange(left_, true)) return;
  struct stat named, own;
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0 && ::stat(path_.c_str(), &named) == 0 &&
      ::fstat(file_.get(), &own) == 0 && named.st_dev == own.st_dev && named.st_ino == own.st_ino)
    ::unlink(path_.c_str());
  ::flock(file_.get(), LOCK_UN);
}

}  // namespace batchfs

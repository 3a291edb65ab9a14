#include "fs/reads.h"

#include <cerrno>
#include <utility>

#include "engine/base/error.h"

namespace batchfs {

Reads::Token Reads::begin(Answer answer) {
  const Token token = ++last_;
  const std::lock_guard lock(mutex_);
  reads_[token].answer = std::move(answer);
  return token;
}

void Reads::start(Token token, std::uint64_t handle, Ino ino, std::uint64_t offset, std::uint64_t size) {
  const std::shared_ptr<OpenFile> file = open_files_.find(handle);
  bool interrupted = false, first = false;
  {
    const std::lock_guard lock(mutex_);
    Read& read = reads_[token];
    read.started = true;
    interrupted = read.interrupted;
    if (!interrupted && file == nullptr) {
      std::vector<Delayed>& delayed = reopening_[handle];
      first = delayed.empty();
      delayed.push_back({token, offset, size});
    }
  }
  if (interrupted) answer(token, {}, EINTR);
  else if (file != nullptr) read(token, file, offset, size);
  else if (first) reopen(handle, ino, offset);
}

void Reads::interrupt(Token token) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = reads_.find(token);
    if (it == reads_.end()) return;
    it->second.interrupted = true;
    if (!it->second.started) return;
  }
  answer(token, {}, EINTR);
}

void Reads::read(Token token, const std::shared_ptr<OpenFile>& file, std::uint64_t offset, std::uint64_t size) {
  const auto done = [this, token, file](std::span<const std::byte> bytes, std::exception_ptr error) {
    answer(token, bytes, error ? to_errno(error_of(error).code()) : 0);
  };
  try {
    file->read(offset, size, done);
  } catch (...) {
    done({}, std::current_exception());
  }
}

void Reads::answer(Token token, std::span<const std::byte> bytes, int error) {
  Answer answer;
  {
    const std::lock_guard lock(mutex_);
    const auto it = reads_.find(token);
    if (it == reads_.end()) return;
    answer = std::move(it->second.answer);
    reads_.erase(it);
  }
  answer(bytes, error);
}

/// Contents are the same, or it fails; see OpenTable. But for control files, which say what was when they were opened: what
/// else of it there was is gone.
void Reads::reopen(std::uint64_t handle, Ino ino, std::uint64_t offset) {
  try {
    open_files_.check(ino);
    const auto found = files_.attributes(ino);
    if (!found || (offset != 0 && found->is_control()))
      throw Error(ErrorCode::stale, "a text of the daemon before this one");
    files_.open(ino, [this, handle, ino](std::shared_ptr<OpenFile> file, std::exception_ptr error) {
      reopened(handle, ino, std::move(file), error);
    });
  } catch (...) {
    reopened(handle, ino, nullptr, std::current_exception());
  }
}

void Reads::reopened(std::uint64_t handle, Ino ino, std::shared_ptr<OpenFile> file, std::exception_ptr error) {
  // First: a read that comes now finds it. The kernel does not release a handle while it is read.
  if (!error) {
    try {
      open_files_.adopt(handle, ino, file);
    } catch (...) {
      error = std::current_exception();
    }
  }
  std::vector<Delayed> delayed;
  {
    const std::lock_guard lock(mutex_);
    const auto it = reopening_.find(handle);
    if (it == reopening_.end()) return;
    delayed = std::move(it->second);
    reopening_.erase(it);
  }
  for (const Delayed& one : delayed) {
    if (error) answer(one.token, {}, to_errno(error_of(error).code()));
    else read(one.token, file, one.offset, one.size);
  }
}

}  // namespace batchfs

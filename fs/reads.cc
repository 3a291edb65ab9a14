#include "fs/reads.h"

#include <cerrno>
#include <utility>

#include "engine/base/error.h"

namespace batchfs {

void Reads::start(RequestToken token, std::uint64_t handle, Ino ino, std::uint64_t offset,
                  std::uint64_t size) {
  if (!requests_.start(token, [this, token] { answer(token, {}, EINTR); })) return;
  if (const std::shared_ptr<OpenFile> file = open_files_.find(handle))
    return read(token, file, offset, size);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Delayed>& delayed = reopening_[handle];
    first = delayed.empty();
    delayed.push_back({token, offset, size});
  }
  if (first) reopen(handle, ino, offset);
}

void Reads::read(RequestToken token, const std::shared_ptr<OpenFile>& file, std::uint64_t offset,
                 std::uint64_t size) {
  const auto done = [this, token, file](std::span<const OpenFile::Bytes> bytes,
                                        std::exception_ptr error) {
    answer(token, bytes, error ? to_errno(error_of(error).code()) : 0);
  };
  try {
    file->read(offset, size, done);
  } catch (...) {
    done({}, std::current_exception());
  }
}

void Reads::answer(RequestToken token, std::span<const OpenFile::Bytes> bytes, int error) {
  if (const Answer answer = requests_.take(token)) answer(bytes, error);
}

/// Contents are the same, or it fails; see OpenTable. Control files are snapshots: the rest of an
/// old one is lost.
void Reads::reopen(std::uint64_t handle, Ino ino, std::uint64_t offset) {
  try {
    open_files_.check(ino);
    const auto found = files_.attributes(ino);
    if (!found || (offset != 0 && found->control))
      throw Error(ErrorCode::stale, "a text of the daemon before this one");
    files_.open(ino, [this, handle, ino](std::shared_ptr<OpenFile> file, std::exception_ptr error) {
      reopened(handle, ino, std::move(file), error);
    });
  } catch (...) {
    reopened(handle, ino, nullptr, std::current_exception());
  }
}

void Reads::reopened(std::uint64_t handle, Ino ino, std::shared_ptr<OpenFile> file,
                     std::exception_ptr error) {
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
    if (error)
      answer(one.token, {}, to_errno(error_of(error).code()));
    else
      read(one.token, file, one.offset, one.size);
  }
}

}  // namespace batchfs

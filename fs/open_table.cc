#include "fs/open_table.h"

#include <algorithm>
#include <utility>

#include <xxhash.h>

namespace batchfs {

namespace {

/// A handle's number: the number of the session's daemon that created it, and a count.
constexpr int kDaemonShift = 40;

ContentDigest digest_of(const MemoryFile& memory) {
  const XXH128_hash_t hash = XXH3_128bits(memory.data(), memory.size());
  return {hash.low64, std::max<std::uint64_t>(hash.high64, 1)};
}

Error other_contents(const std::string& path) {
  return Error(ErrorCode::stale,
               "the file has other contents than before the daemon's restart, since the store "
               "changed; close it and open it again",
               path);
}

}  // namespace

OpenTable::OpenTable(SessionState* state, Kernel kernel, Log& log)
    : state_(state),
      kernel_(std::move(kernel)),
      log_(log),
      daemon_(state != nullptr ? state->next_daemon() : 0) {
  if (state == nullptr) return;
  for (const SessionState::OpenedFile& file : state->opened_files())
    files_[file.ino] = {nullptr,      file.backing_id, file.slot,
                        file.handles, file.handles,    file.digest};
}

std::optional<OpenTable::Opening> OpenTable::open_again(Ino ino) {
  const std::lock_guard lock(files_mutex_);
  const auto it = files_.find(ino);
  if (it == files_.end()) return std::nullopt;
  if (it->second.stale) throw other_contents(kernel_.path(ino));
  if (it->second.file == nullptr && it->second.backing_id == 0) return std::nullopt;
  return add_handle(it->second);
}

OpenTable::Opening OpenTable::open(Ino ino, std::shared_ptr<OpenFile> file, bool passthrough) {
  // Before the lock: this takes milliseconds for a large batch.
  const MemoryFile* memory = file->memory_file();
  const ContentDigest digest =
      state_ != nullptr && memory != nullptr && !passthrough ? digest_of(*memory) : ContentDigest{};
  const std::lock_guard lock(files_mutex_);
  const auto [it, first] = files_.try_emplace(ino);
  try {
    if (first) {
      it->second.file = std::move(file);
      if (passthrough) back(ino, it->second);
      if (it->second.backing_id == 0) record(ino, it->second, digest);
    } else {
      agree(ino, it->second, file, digest);
    }
    return add_handle(it->second);
  } catch (...) {
    if (first) forget(it);
    throw;
  }
}

/// Called with files_mutex_ held.
void OpenTable::back(Ino ino, File& file) {
  const MemoryFile* memory = file.file->memory_file();
  if (memory == nullptr || memory->size() == 0) return;
  try {
    file.backing_id = kernel_.open_backing(memory->fd());
  } catch (const Error& cause) {
    log_.warning(cause.what());  // served directly instead
    return;
  }
  if (state_ == nullptr) return;
  file.slot = state_->add(ino, file.backing_id);
  if (file.slot == SessionState::kNoSlot) kernel_.close_backing(std::exchange(file.backing_id, 0));
}

/// Has the session's state know the contents of a file that the kernel does not have. Called with
/// files_mutex_ held.
void OpenTable::record(Ino ino, File& file, const ContentDigest& digest) {
  const MemoryFile* memory = file.file->memory_file();
  if (state_ == nullptr || memory == nullptr) return;
  file.digest = digest == ContentDigest{} ? digest_of(*memory) : digest;
  file.slot = state_->add(ino, 0, file.digest);
}

/// A file of an earlier daemon was made again: the same, or stale. Called with files_mutex_ held.
void OpenTable::agree(Ino ino, File& file, const std::shared_ptr<OpenFile>& made,
                      const ContentDigest& digest) {
  if (file.file != nullptr || file.backing_id != 0) return;
  const MemoryFile* memory = made->memory_file();
  if (!file.stale && memory != nullptr) {
    file.stale = file.digest != (digest == ContentDigest{} ? digest_of(*memory) : digest);
    if (file.stale) log_.error(other_contents(kernel_.path(ino)).what());
  }
  if (file.stale) throw other_contents(kernel_.path(ino));
  file.file = made;
}

void OpenTable::check(Ino ino) const {
  const std::lock_guard lock(files_mutex_);
  const auto it = files_.find(ino);
  if (it != files_.end() && it->second.stale) throw other_contents(kernel_.path(ino));
}

/// Called with files_mutex_ held, so that the file cannot be released before its handle counts.
OpenTable::Opening OpenTable::add_handle(File& file) {
  const std::lock_guard lock(handles_mutex_);
  const std::uint64_t handle = (daemon_ << kDaemonShift) | ++last_handle_;
  handles_[handle] = file.file;  // first: it can fail
  set_handles(file, file.handles + 1);
  return {handle, file.backing_id, file.file};
}

/// The file has no handle left. Called with files_mutex_ held.
void OpenTable::forget(std::unordered_map<Ino, File>::iterator file) {
  if (file->second.slot != SessionState::kNoSlot) state_->remove(file->second.slot);
  // Not before the last release: closing the number right after the answer to open races with the
  // kernel's use.
  if (file->second.backing_id != 0) kernel_.close_backing(file->second.backing_id);
  files_.erase(file);
}

void OpenTable::set_handles(File& file, std::uint32_t count) {
  file.handles = count;
  if (file.slot != SessionState::kNoSlot) state_->set_handles(file.slot, count);
}

std::shared_ptr<OpenFile> OpenTable::find(std::uint64_t handle) const {
  const std::lock_guard lock(handles_mutex_);
  const auto it = handles_.find(handle);
  return it == handles_.end() ? nullptr : it->second;
}

void OpenTable::adopt(std::uint64_t handle, Ino ino, std::shared_ptr<OpenFile> file) {
  const MemoryFile* memory = file->memory_file();
  const ContentDigest digest = memory != nullptr ? digest_of(*memory) : ContentDigest{};
  const std::lock_guard lock(files_mutex_);
  const auto [it, unknown] = files_.try_emplace(ino);
  File& entry = it->second;
  if (unknown && memory != nullptr) {
    files_.erase(it);
    throw Error(ErrorCode::stale, "too many files were open to know the contents of this one",
                kernel_.path(ino));
  }
  agree(ino, entry, file, digest);
  if (entry.file == nullptr)
    entry.file = file;
  else
    file = entry.file;
  {
    const std::lock_guard handles_lock(handles_mutex_);
    if (!handles_.insert_or_assign(handle, std::move(file)).second) return;
  }
  if (entry.inherited > 0)
    --entry.inherited;
  else
    set_handles(entry, entry.handles + 1);
}

void OpenTable::release(std::uint64_t handle, Ino ino) {
  const std::lock_guard lock(files_mutex_);
  std::shared_ptr<OpenFile> last;  // goes when the handles' lock is free again
  bool known = false;
  {
    const std::lock_guard handles_lock(handles_mutex_);
    if (const auto it = handles_.find(handle); it != handles_.end()) {
      known = true;
      last = std::move(it->second);
      handles_.erase(it);
    }
  }
  const auto it = files_.find(ino);
  if (it == files_.end()) return;
  File& file = it->second;
  if (!known) {
    if (file.inherited == 0) return;
    --file.inherited;
  }
  set_handles(file, file.handles - 1);
  if (file.handles == 0) forget(it);
}

}  // namespace batchfs

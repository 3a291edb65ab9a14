#include "engine/store/version_slots.h"

#include <cerrno>
#include <optional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "engine/base/descriptor.h"

namespace batchfs {

namespace {

std::uint64_t slot_bytes() {
  return (VersionTable::kBytes + VersionTable::kPage - 1) / VersionTable::kPage *
         VersionTable::kPage;
}

/// A lock belongs to an open file description: each table has its own.
Descriptor open_again(int fd) {
  Descriptor file(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) throw VersionTable::no_memory(errno);
  return file;
}

/// `type`: F_RDLCK, F_WRLCK. Locks the first byte of a slot, or changes the lock of this file.
/// False where another open file's lock is in the way.
bool lock(int file, short type, std::uint64_t position) {
  struct flock one {};
  one.l_type = type;
  one.l_whence = SEEK_SET;
  one.l_start = static_cast<off_t>(position);
  one.l_len = 1;
  if (::fcntl(file, F_OFD_SETLK, &one) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw VersionTable::no_memory(errno);
}

}  // namespace

const std::uint64_t VersionSlots::kBytes = slot_bytes() * kCount;

std::uint64_t VersionSlots::position(std::uint32_t slot) const {
  return offset_ + slot * slot_bytes();
}

std::shared_ptr<VersionTable> VersionSlots::open(std::uint32_t slot) const {
  const Descriptor file = open_again(fd_);
  if (!lock(file.get(), F_RDLCK, position(slot))) return nullptr;
  return std::make_shared<VersionTable>(file.get(), position(slot));
}

VersionSlots::Table VersionSlots::take(std::uint32_t kept) const {
  std::optional<Table> taken;
  for (std::uint32_t slot = 0; slot < kCount; ++slot) {
    if (slot == kept) continue;
    const Descriptor file = open_again(fd_);
    if (!lock(file.get(), F_WRLCK, position(slot))) continue;
    VersionTable::clear(file.get(), position(slot));
    if (taken) continue;
    // The first page of a table must have room, see VersionTable.
    if (const int cause =
            ::posix_fallocate(file.get(), static_cast<off_t>(position(slot)), VersionTable::kPage);
        cause != 0)
      throw VersionTable::no_memory(cause);
    taken = {slot, std::make_shared<VersionTable>(file.get(), position(slot))};
    lock(file.get(), F_RDLCK, position(slot));
  }
  if (!taken) throw VersionTable::no_memory(EBUSY);
  return *taken;
}

}  // namespace batchfs

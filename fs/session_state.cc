#include "fs/session_state.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <random>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "fs/generations/known_inodes.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kStatePage = 4096;
constexpr std::uint64_t kMagic = 0x3665746174736662;  // "bfstate6": changes with the layout
constexpr std::size_t kMaxInit = 256;                 // the request has 104 bytes
constexpr std::size_t kMaxIdentity = 16000;           // several hundred stores
constexpr std::uint32_t kSlots = 32768;

Error no_memory(int cause) {
  return Error(ErrorCode::no_memory, describe_system_error(cause), "the memory for the session");
}

}  // namespace

struct SessionState::Layout {
  struct Slot {
    std::atomic<std::uint64_t> ino;  // 0: free. Written last, removed first
    std::atomic<std::int32_t> id;
    std::atomic<std::uint32_t> handles;
    ContentDigest digest;
  };
  std::uint64_t magic;
  std::atomic<std::uint32_t> agreed, daemons;
  std::uint64_t id;  // 0: not given yet
  std::uint64_t flags;
  std::int64_t mount_time;
  /// How often the store was read in this session; 0: no identity yet. The identity is
  /// identities[readings % 2]: the other one is written before the number changes.
  std::atomic<std::uint32_t> readings;
  std::uint32_t init_size;
  struct Identity {
    std::int64_t time;
    std::uint32_t version_slot;
    std::uint32_t size;
    char text[kMaxIdentity];
  };
  std::byte init[kMaxInit];
  Identity identities[2];
  Slot slots[kSlots];

  static constexpr std::uint64_t versions_offset() {
    return (sizeof(Layout) + kStatePage - 1) / kStatePage * kStatePage;
  }
  static std::uint64_t inodes_offset() {
    return (versions_offset() + VersionSlots::kBytes + kStatePage - 1) / kStatePage * kStatePage;
  }
  static off_t file_bytes() { return static_cast<off_t>(inodes_offset() + KnownInodes::kBytes); }
};

int SessionState::create() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  Descriptor file(::memfd_create("batchfs-session", MFD_CLOEXEC));
  if (file.get() < 0) throw no_memory(errno);
  prepare(file.get());
  return file.release();
}

void SessionState::prepare(int fd) {
  struct stat file;
  std::uint64_t magic = 0;
  if (::fstat(fd, &file) != 0) throw no_memory(errno);
  if (file.st_size != 0 && (file.st_size != Layout::file_bytes() ||
                            ::pread(fd, &magic, sizeof magic, 0) != sizeof magic || magic != 0))
    return;
  // The magic number is written last: until then, the next process sees an empty file.
  if (::ftruncate(fd, Layout::file_bytes()) != 0) throw no_memory(errno);
  const auto used = static_cast<off_t>(Layout::versions_offset());
  if (const int cause = ::posix_fallocate(fd, 0, used); cause != 0) throw no_memory(cause);
  if (::pwrite(fd, &kMagic, sizeof kMagic, 0) != sizeof kMagic) throw no_memory(errno);
}

SessionState::SessionState(int fd) : fd_(fd) {
  struct stat file;
  if (::fstat(fd, &file) != 0 || file.st_size != Layout::file_bytes())
    throw Error(ErrorCode::not_supported,
                "the session was begun by another version of batchfs; unmount it and mount again");
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw no_memory(errno);
  layout_ = static_cast<Layout*>(memory);
  const char* problem =
      layout_->magic != kMagic
          ? "the session was begun by another version of batchfs; unmount it and mount again"
      : layout_->init_size > kMaxInit || layout_->identities[0].size > kMaxIdentity ||
              layout_->identities[1].size > kMaxIdentity ||
              (layout_->agreed != 0 && layout_->init_size == 0)
          ? "the session's state makes no sense; unmount it and mount again"
          : nullptr;
  if (problem != nullptr) {
    const bool version = layout_->magic != kMagic;
    ::munmap(layout_, sizeof(Layout));
    throw Error(version ? ErrorCode::not_supported : ErrorCode::corrupt, problem);
  }
  if (layout_->mount_time == 0) layout_->mount_time = std::time(nullptr);
  if (layout_->id == 0) {
    std::random_device random;
    layout_->id = (std::uint64_t{random()} << 32) | random() | 1;
  }
}

std::unique_ptr<KnownInodes> SessionState::inodes(int fd) {
  const SessionState checked(fd);
  return std::make_unique<KnownInodes>(fd, Layout::inodes_offset());
}

SessionState::~SessionState() { ::munmap(layout_, sizeof(Layout)); }

bool SessionState::is_agreed() const { return layout_->agreed != 0; }

std::span<const std::byte> SessionState::init_request() const {
  return {layout_->init, layout_->init_size};
}

std::uint64_t SessionState::flags() const { return layout_->flags; }

std::uint64_t SessionState::id() const { return layout_->id; }

std::time_t SessionState::mount_time() const {
  return static_cast<std::time_t>(layout_->mount_time);
}

void SessionState::keep_init_request(std::span<const std::byte> request) {
  if (request.size() > kMaxInit) return;
  std::copy(request.begin(), request.end(), layout_->init);
  layout_->init_size = static_cast<std::uint32_t>(request.size());
}

void SessionState::agree(std::uint64_t flags) {
  layout_->flags = flags;
  if (layout_->init_size != 0) layout_->agreed = 1;
}

std::uint32_t SessionState::begin_reading(std::string_view identity, std::time_t time,
                                          std::uint32_t version_slot) {
  if (identity.size() > kMaxIdentity)
    throw Error(ErrorCode::invalid_argument,
                "a view joins too many stores for one mount; mount fewer together");
  const std::uint32_t next = layout_->readings + 1;
  Layout::Identity& other = layout_->identities[next % 2];
  other.time = next == kFirstReading ? mount_time() : time;
  other.version_slot = version_slot;
  other.size = static_cast<std::uint32_t>(identity.size());
  std::copy(identity.begin(), identity.end(), other.text);
  layout_->readings = next;
  return next;
}

SessionState::Reading SessionState::reading() const {
  for (;;) {
    const std::uint32_t number = layout_->readings;
    if (number == 0) return {};
    const Layout::Identity& now = layout_->identities[number % 2];
    Reading result{number, std::string(now.text, std::min<std::size_t>(now.size, kMaxIdentity)),
                   static_cast<std::time_t>(now.time), now.version_slot % VersionSlots::kCount};
    // Another daemon, about to be replaced, may have read the store twice meanwhile.
    if (layout_->readings == number) return result;
  }
}

SessionState::KnownReading SessionState::known_reading() const {
  const VersionSlots slots(fd_, Layout::versions_offset());
  for (;;) {
    KnownReading known{reading(), nullptr};
    if (known.number == 0) return known;
    known.versions = slots.open(known.version_slot);
    // The newest reading's slot cannot be taken: otherwise another process has begun a newer
    // reading.
    if (layout_->readings != known.number) continue;
    if (known.versions != nullptr) return known;
    throw Error(ErrorCode::corrupt,
                "the session's state makes no sense; unmount it and mount again");
  }
}

VersionSlots::Table SessionState::new_versions() const {
  const Reading newest = reading();
  return VersionSlots(fd_, Layout::versions_offset())
      .take(newest.number != 0 ? newest.version_slot : VersionSlots::kCount);
}

std::uint32_t SessionState::next_daemon() {
  const std::lock_guard lock(mutex_);
  free_.clear();
  for (std::uint32_t slot = kSlots; slot-- > 0;)
    if (layout_->slots[slot].ino == 0) free_.push_back(slot);
  return ++layout_->daemons;
}

std::vector<SessionState::OpenedFile> SessionState::opened_files() const {
  std::vector<OpenedFile> result;
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    const Layout::Slot& slot = layout_->slots[i];
    if (slot.ino != 0) result.push_back({slot.ino, slot.id, slot.handles, i, slot.digest});
  }
  return result;
}

std::uint32_t SessionState::add(std::uint64_t ino, std::int32_t backing_id,
                                const ContentDigest& digest) {
  std::uint32_t number;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return kNoSlot;
    number = free_.back();
    free_.pop_back();
  }
  Layout::Slot& slot = layout_->slots[number];
  slot.id = backing_id;
  slot.digest = digest;
  slot.handles = 0;
  slot.ino = ino;
  return number;
}

void SessionState::set_handles(std::uint32_t slot, std::uint32_t handles) {
  layout_->slots[slot].handles = handles;
}

void SessionState::remove(std::uint32_t slot) {
  layout_->slots[slot].ino = 0;
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

}  // namespace batchfs

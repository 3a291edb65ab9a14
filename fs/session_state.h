#pragma once
// What a session with the kernel needs to outlive the daemon that serves it: a few pages of memory
// that the daemon's supervisor keeps and hands, with the descriptor of /dev/fuse, to the next
// daemon.
//
// - The INIT request names the kernel's capabilities, once, and its reply the ones in use.
//   The next daemon plays the request to itself and keeps to what was agreed.
// - The kernel serves a file in passthrough mode from a backing file that it knows by a number, for
//   as long as the file is open anywhere, and refuses to open it in another way or with another
//   backing file meanwhile (EIO). The next daemon answers opens of such a file with that number.
// - A batch that is open otherwise is made again by the next daemon. The digest of its contents
//   tells whether that gave the same bytes; a file without one must not be read on.
// - Each object of the store has one version in one reading of the store, whichever daemons serve
//   it, see engine/store/version_slots.h. The tables lie behind the rest.
// - The numbers of files are arithmetic on the store's metadata and the views. A daemon for which
//   the same numbers would mean other files must not go on; `identity` says what they were made of.
// - The kernel's inode numbers mean one file each, of one reading of the store. Readings and inodes
//   are counted through the session, see generations/known_inodes.h. The table lies behind the
//   rest.
//
// The writer may be killed between any two instructions. So what matters is written in an order in
// which every state is a valid one, and where there is a choice, a backing file is kept too long,
// not too short.

#include <array>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/version_slots.h"

namespace batchfs {

class KnownInodes;

/// XXH3-128 of a file's contents. All zeros: none, the kernel has the contents.
using ContentDigest = std::array<std::uint64_t, 2>;

/// Thread-safe once made.
class SessionState {
 public:
  /// A new, empty one: the descriptor of its memory. Throws no_memory.
  static int create();
  /// Makes an empty file one; leaves any other as it is. Throws no_memory.
  static void prepare(int fd);

  /// Of a descriptor that create() gave, perhaps to another process. It stays the caller's, and
  /// outlives this.
  /// Throws not_supported when another version of batchfs wrote it, corrupt when it makes no sense.
  explicit SessionState(int fd);
  ~SessionState();
  /// The kernel's inodes in the same memory. Precondition: no other daemon serves any more. Throws
  /// as the constructor does.
  static std::unique_ptr<KnownInodes> inodes(int fd);
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  /// Has a daemon agreed on the protocol with the kernel?
  bool is_agreed() const;
  /// The kernel's INIT request as it was read.
  std::span<const std::byte> init_request() const;
  /// INIT flags in use.
  std::uint64_t flags() const;
  /// A number that no other session has; not 0.
  std::uint64_t id() const;
  /// When it was first mounted.
  std::time_t mount_time() const;
  /// Keeps the request, unless it is too long (that of no kernel is), for agree().
  void keep_init_request(std::span<const std::byte> request);
  void agree(std::uint64_t flags);

  /// A reading of the store, by what the inode numbers of new lookups are made of.
  struct Reading {
    std::uint32_t number = 0;  // 0: none; kFirstReading: the session's first
    std::string identity;
    std::time_t time = 0;            // when the store was read
    std::uint32_t version_slot = 0;  // of its table of versions
  };
  /// The newest one, perhaps of a daemon before this one.
  Reading reading() const;
  /// The store was read: from now on, this is the newest reading. Gives it a number that no reading
  /// of the session had before, and returns that. The first one has the time of the mount. Throws
  /// invalid_argument when the identity is longer than 16,000 bytes.
  std::uint32_t begin_reading(std::string_view identity, std::time_t time,
                              std::uint32_t version_slot);
  /// The newest reading's versions, and which reading it is.
  struct KnownReading : Reading {
    std::shared_ptr<VersionTable> versions;
  };
  KnownReading known_reading() const;
  /// An empty table of versions, for a reading that begins. Throws no_memory.
  VersionSlots::Table new_versions() const;

  /// The number of this daemon among those of the session, from 1 on. Counts up. To be called when
  /// no other daemon serves any more, and before add(): which slots are free is found here, since
  /// one that is replaced takes slots until it ends.
  std::uint32_t next_daemon();

  /// An open file whose contents must stay the same.
  struct OpenedFile {
    std::uint64_t ino = 0;
    std::int32_t backing_id = 0;  // 0: not in passthrough mode
    std::uint32_t handles = 0;
    std::uint32_t slot = 0;
    ContentDigest digest{};
  };
  /// Those that earlier daemons left.
  std::vector<OpenedFile> opened_files() const;
  /// Notes a file. Returns its slot, or kNoSlot when there is no room for more: then it cannot be
  /// served in passthrough mode, and not be read on after a takeover.
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;
  std::uint32_t add(std::uint64_t ino, std::int32_t backing_id, const ContentDigest& digest = {});
  void set_handles(std::uint32_t slot, std::uint32_t handles);
  void remove(std::uint32_t slot);

 private:
  struct Layout;
  const int fd_;
  Layout* layout_ = nullptr;
  std::mutex mutex_;                 // guards free_
  std::vector<std::uint32_t> free_;  // slots, from next_daemon() on
};

}  // namespace batchfs

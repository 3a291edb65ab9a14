#pragma once
// State that lets a session with the kernel outlive the daemon that serves it: a few pages of
// memory that the daemon's supervisor keeps and hands, with the descriptor of /dev/fuse, to the
// next daemon.
//
// - The INIT request names the kernel's capabilities, once, and its reply the ones in use.
//   The next daemon replays the request to itself and keeps to the agreed flags.
// - The kernel serves a file in passthrough mode from a backing file that it knows by a number, as
//   long as the file is open anywhere, and refuses to open it in another way or with another
//   backing file meanwhile (EIO). The next daemon answers opens of such a file with that number.
// - The next daemon makes a batch that is open otherwise again. The digest of its contents shows
//   whether the bytes are the same; a file without one must not be read any more.
// - Each object of the store has one version in one reading of the store, whichever daemons serve
//   it, see engine/store/version_slots.h. The tables lie after the rest.
// - The numbers of files are arithmetic on the store's metadata and the views. A daemon for which
//   the same numbers would mean other files must not continue; `identity` records their inputs.
// - The kernel's inode numbers mean one file each, of one reading of the store. Readings and inodes
//   are counted through the session, see generations/known_inodes.h. The table lies after the
//   rest.
//
// The writer may be killed between any two instructions. Therefore the order of the writes makes
// every intermediate state a valid one, and where there is a choice, a backing file is kept too
// long, not too short.

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
  /// Creates an empty state. Returns the descriptor of its memory. Throws no_memory.
  static int create();
  /// Initializes an empty file; leaves any other unchanged. Throws no_memory.
  static void prepare(int fd);

  /// Opens the state of a descriptor from create(), perhaps in another process. The caller keeps
  /// the descriptor, which outlives this.
  /// Throws not_supported if another version of batchfs wrote it, corrupt if it is malformed.
  explicit SessionState(int fd);
  ~SessionState();
  /// The kernel's inodes in the same memory. Precondition: no other daemon serves any more. Throws
  /// the errors of the constructor.
  static std::unique_ptr<KnownInodes> inodes(int fd);
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  /// Has a daemon agreed on the protocol with the kernel?
  bool is_agreed() const;
  /// The kernel's INIT request as it was read.
  std::span<const std::byte> init_request() const;
  /// INIT flags in use.
  std::uint64_t flags() const;
  /// A number unique to the session; not 0.
  std::uint64_t id() const;
  /// Time of the first mount.
  std::time_t mount_time() const;
  /// Keeps the request for agree(), unless it is too long (no kernel's is).
  void keep_init_request(std::span<const std::byte> request);
  void agree(std::uint64_t flags);

  /// A reading of the store, with the inputs of the inode numbers of new lookups.
  struct Reading {
    std::uint32_t number = 0;  // 0: none; kFirstReading: the session's first
    std::string identity;
    std::time_t time = 0;            // when the store was read
    std::uint32_t version_slot = 0;  // of its table of versions
  };
  /// The newest reading, perhaps of an earlier daemon.
  Reading reading() const;
  /// The store was read: from now on, this is the newest reading. Returns a number that no reading
  /// of the session had before. The first reading has the time of the mount. Throws
  /// invalid_argument if the identity is longer than 16,000 bytes.
  std::uint32_t begin_reading(std::string_view identity, std::time_t time,
                              std::uint32_t version_slot);
  /// The newest reading and its versions.
  struct KnownReading : Reading {
    std::shared_ptr<VersionTable> versions;
  };
  KnownReading known_reading() const;
  /// An empty table of versions, for a new reading. Throws no_memory.
  VersionSlots::Table new_versions() const;

  /// The number of this daemon among those of the session, from 1 on. Increments it. Call when no
  /// other daemon serves any more, and before add(): it finds the free slots, and a daemon that is
  /// being replaced takes slots until it ends.
  std::uint32_t next_daemon();

  /// An open file whose contents must stay the same.
  struct OpenedFile {
    std::uint64_t ino = 0;
    std::int32_t backing_id = 0;  // 0: not in passthrough mode
    std::uint32_t handles = 0;
    std::uint32_t slot = 0;
    ContentDigest digest{};
  };
  /// The files that earlier daemons left open.
  std::vector<OpenedFile> opened_files() const;
  /// Records a file. Returns its slot, or kNoSlot if there is no room: then it cannot be served in
  /// passthrough mode, and cannot be read any more after a takeover.
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

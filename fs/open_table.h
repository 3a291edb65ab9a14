#pragma once
// The files that programs have open, as the kernel knows them: numbers of handles and of backing
// files.
//
// Handles of one file share one OpenFile: the kernel refuses (EIO) a second backing file for an
// inode that is open in passthrough mode, and any other mode. That holds after the daemon's death,
// too, so the session's state records which backing files exist. A handle's number encodes the
// daemon of the session that created it. Handles of an earlier daemon are not in the table; on its
// first read, such a handle's file is opened again and kept under that number.
//
// Programs see one version of an open file, also across daemons. A file in memory that is not in
// passthrough mode has a digest in the session's state. A daemon that made such a file again with
// other contents refuses to serve it (stale), and also refuses when there was no room for the
// digest.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "fs/files.h"
#include "fs/session_state.h"

namespace batchfs {

/// Thread-safe.
class OpenTable {
 public:
  /// Backing files of the kernel, and names of files for messages.
  struct Kernel {
    std::function<std::int32_t(int fd)> open_backing;  // its number; throws when the kernel refuses
    std::function<void(std::int32_t id)> close_backing;
    std::function<std::string(Ino ino)> path;
  };
  /// `state` may be null if no daemon came before this one. The table knows the files that earlier
  /// daemons left open.
  OpenTable(SessionState* state, Kernel kernel, Log& log);

  struct Opening {
    std::uint64_t handle = 0;
    std::int32_t backing_id = 0;     // 0: the kernel does not read it itself
    std::shared_ptr<OpenFile> file;  // null: opened by an earlier daemon, and read by the kernel
  };
  /// Returns another handle on a file that is open; nullopt if it is not open, or must be made
  /// first. Throws stale, see check().
  std::optional<Opening> open_again(Ino ino);
  /// Returns a handle on a file; if it was opened meanwhile, on the file opened then. With
  /// `passthrough`, the kernel reads it itself if it can. Throws stale if an earlier daemon served
  /// other contents through handles that are still open.
  Opening open(Ino ino, std::shared_ptr<OpenFile> file, bool passthrough);

  /// The file of a handle. Null for a handle of an earlier daemon.
  std::shared_ptr<OpenFile> find(std::uint64_t handle) const;
  /// Throws stale if the file is known to differ from the contents that handles of earlier daemons
  /// saw.
  void check(Ino ino) const;
  /// Binds an earlier daemon's handle to a file. Throws stale unless the contents are known to
  /// equal those that the earlier daemon served.
  void adopt(std::uint64_t handle, Ino ino, std::shared_ptr<OpenFile> file);

  /// The kernel will not use this handle again. An unknown handle is an earlier daemon's.
  void release(std::uint64_t handle, Ino ino);

 private:
  struct File {
    std::shared_ptr<OpenFile> file;
    std::int32_t backing_id = 0;
    std::uint32_t slot = SessionState::kNoSlot;
    std::uint32_t handles = 0;
    std::uint32_t inherited =
        0;  // of these, opened by earlier daemons, so that their numbers are unknown
    ContentDigest digest{};  // of the bytes served, if the session's state has it
    bool stale = false;      // made again with other contents
  };
  void back(Ino ino, File& file);
  void record(Ino ino, File& file, const ContentDigest& digest);
  void agree(Ino ino, File& file, const std::shared_ptr<OpenFile>& made,
             const ContentDigest& digest);
  Opening add_handle(File& file);
  void set_handles(File& file, std::uint32_t count);
  void forget(std::unordered_map<Ino, File>::iterator file);

  SessionState* const state_;
  const Kernel kernel_;
  Log& log_;
  const std::uint64_t daemon_;  // its number

  mutable std::mutex files_mutex_;  // guards files_
  std::unordered_map<Ino, File> files_;

  mutable std::mutex handles_mutex_;  // guards the members below; the inner one
  std::unordered_map<std::uint64_t, std::shared_ptr<OpenFile>> handles_;
  std::uint64_t last_handle_ = 0;
};

}  // namespace batchfs

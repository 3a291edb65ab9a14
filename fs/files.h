#pragma once
// The files and directories that the FUSE layer serves, by the kernel's inode number.

#include <atomic>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/pipeline/memory_file.h"
#include "engine/pipeline/waits/waiters.h"
#include "fs/ino.h"

namespace batchfs {

struct Attributes {
  bool directory = false;
  bool link = false;     // symbolic
  bool control = false;  // its contents change
  /// Exact, or 0 if the length is known only after reading everything: for control files and long
  /// texts, which are read without the kernel's cache.
  std::uint64_t size = 0;
  /// Preferred size of reads, in bytes. Python buffers files with it: np.load(mmap_mode="r") reads
  /// that much twice to parse a header of 128 bytes, which must not cost more than the mapping of a
  /// batch. cp and cat read 128 KiB at least. The values of an array are assembled by each request:
  /// few large requests.
  std::uint32_t block_size = kSmallBlock;
  static constexpr std::uint32_t kSmallBlock = 4 << 10, kLargeBlock = 1 << 20;
};

struct Inode : Attributes {
  Ino ino = 0;
  std::uint64_t shown = 0;  // the number that stat(2) shows
  std::time_t time = 0;     // when its state of the store was read; 0: that of the mount
  /// It belongs to an earlier reading of the store: the kernel must not keep the name.
  bool outdated = false;
};

/// An open file. Thread-safe.
class OpenFile {
 public:
  virtual ~OpenFile() = default;

  enum class Caching : std::uint8_t {
    kernel,  // small and immutable: the kernel may keep its pages
    direct,  // reads come to us
  };
  virtual Caching caching() const { return Caching::direct; }

  /// The complete contents as a memory file that the kernel can serve without us; nullptr if there
  /// is none.
  virtual const MemoryFile* memory_file() const { return nullptr; }

  using Bytes = std::span<const std::byte>;
  /// `done` is called once with the bytes (runs that follow each other, valid during the call, of
  /// `size` bytes together, fewer only at the end of the file) or an error, from any thread,
  /// possibly before this returns.
  using ReadDone = std::function<void(std::span<const Bytes>, std::exception_ptr)>;
  virtual void read(std::uint64_t offset, std::uint64_t size, ReadDone done) = 0;
};

/// Thread-safe.
class Files {
 public:
  virtual ~Files() = default;

  /// A found inode gets one more kernel reference, until forget().
  virtual std::optional<Inode> lookup(Ino parent, std::string_view name) = 0;
  /// The kernel drops that many references to the inode.
  virtual void forget(Ino, std::uint64_t) {}
  virtual std::optional<Inode> attributes(Ino ino) const = 0;

  /// An entry of a directory: it has no Ino before it is looked up. `next` is as in Tree::list.
  struct Entry {
    const std::string& name;
    std::uint64_t shown;
    bool directory, link;
    std::uint64_t next;
  };
  using Visit = std::function<bool(const Entry& entry)>;
  virtual void list(Ino directory, std::uint64_t offset, const Visit& visit) const = 0;
  /// The shown number of the directory that the inode is in; nullopt for no inode.
  virtual std::optional<std::uint64_t> parent_shown(Ino ino) const = 0;
  /// The path below the root; "" for the root and for no inode.
  virtual std::string path(Ino ino) const = 0;
  /// The target of a symbolic link; nullopt for any other file.
  virtual std::optional<std::string> link_target(Ino ino) const = 0;

  using OpenDone = std::function<void(std::shared_ptr<OpenFile>, std::exception_ptr)>;
  /// Opens a file; for a batch `done` is called when it is complete. Returns an id for cancel(), 0
  /// when there is nothing to cancel.
  virtual WaiterId open(Ino ino, OpenDone done) = 0;
  virtual void cancel(WaiterId waiter) = 0;

  /// Where batches lie.
  virtual const MemoryFiles& memory_files() const = 0;
  /// State of the mount for status.json.
  virtual void set_passthrough(bool on) = 0;
  /// Sum of the sizes of all arrays, for statfs.
  virtual std::uint64_t total_bytes() const = 0;
};

}  // namespace batchfs

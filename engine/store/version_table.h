#pragma once
// A table of object versions in memory that may outlive the process: the entries of ObjectVersions.
//
// The memory is that of a session that daemons take over from each other. Whatever instruction a
// daemon is killed at, every state of the table is valid: an entry is taken by setting the first
// half of its identity, then the other half and the version are set, each once.
//
// An entry has no key, but its identity: 128 bits of a hash with a secret key (keyed_hash.h), which
// is as good. Two objects with one identity would have one version: a false error, or a change that
// nobody notices.
//
// The table never evicts. It grows up to a number of bytes, by segments that double; in a file, the
// room of a segment is taken before it is used. Versions that find no room are not kept.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/store/keyed_hash.h"

namespace batchfs {

/// Thread-safe, without locks.
class VersionTable {
 public:
  /// Version of an object whose store reports none.
  static constexpr std::uint64_t kUnknown = 0;
  /// Address space of a table of any size [bytes], from the begin of a page on.
  static const std::size_t kBytes;
  static constexpr std::size_t kPage = 4096;

  /// In memory of its own. Throws no_memory.
  VersionTable();
  /// In `kBytes` of a file from `offset` on, a multiple of the page size; zeros at first. The file
  /// has room for the first page. The descriptor stays the caller's. Throws no_memory.
  VersionTable(int fd, std::uint64_t offset);
  /// Empties the table there, and releases its memory. Precondition: nobody uses it. Throws
  /// no_memory.
  static void clear(int fd, std::uint64_t offset);
  static Error no_memory(int cause);  // an errno
  ~VersionTable();
  VersionTable(const VersionTable&) = delete;
  VersionTable& operator=(const VersionTable&) = delete;

  /// Limits this process's additions to this many bytes of entries; at least one segment (96 KiB)
  /// is used.
  void limit(std::uint64_t bytes);

  enum class Accepted : std::uint8_t { yes, other_version, no_room };
  /// Keeps the version of an object that is not in the table. kUnknown agrees with every version;
  /// the first known one is then kept. To be called before anybody gets a byte of the object. The
  /// same key in another `space` is another object.
  Accepted accept(std::string_view key, std::uint64_t version, std::string_view space = {});
  /// nullopt: not in the table.
  std::optional<std::uint64_t> find(std::string_view key, std::string_view space = {}) const;
  /// A version by the text that names it; never kUnknown. The same as long as the table exists.
  std::uint64_t digest(std::string_view text) const;

  std::uint64_t size() const;  // objects

  /// Stands for an object in a table with this secret. No half of it is 0.
  using Identity = KeyedHash::Value;
  static Identity identity(const KeyedHash::Key& secret, std::string_view space,
                           std::string_view key);

 private:
  struct Entry {
    std::atomic<std::uint64_t> first, second;  // the identity; 0: free, or not set yet
    std::atomic<std::uint64_t> version;        // kUnknown until known
  };
  struct Memory;
  void start();
  bool make_room(std::size_t segment);
  KeyedHash::Key secret() const;

  const Descriptor file_;  // -1: none
  const std::uint64_t offset_;
  Memory* const memory_;
  std::atomic<std::size_t> segments_;  // that entries may be added to
};

}  // namespace batchfs

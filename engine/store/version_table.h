#pragma once
// A table of object versions in memory that may outlive the process: what ObjectVersions keeps its
// entries in.
//
// The memory is that of a session that daemons take over from each other. Whatever instruction a
// daemon is killed at, every state of the table is valid: an entry is taken by setting its key,
// then its version is set, each once.
//
// The table never evicts. It grows up to a number of bytes, touching memory as it fills; what finds
// no room is not kept.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace batchfs {

/// Thread-safe, without locks.
class VersionTable {
 public:
  /// Version of an object whose store reports none.
  static constexpr std::uint64_t kUnknown = 0;
  /// Address space of a table of any size [bytes].
  static const std::size_t kBytes;

  /// In memory of its own. Throws no_memory.
  VersionTable();
  /// In `kBytes` of a file in memory from `offset` on, a multiple of the page size; zeros at first.
  /// The descriptor stays the caller's. Throws no_memory.
  VersionTable(int fd, std::uint64_t offset);
  ~VersionTable();
  VersionTable(const VersionTable&) = delete;
  VersionTable& operator=(const VersionTable&) = delete;

  /// Limits what this process adds to so many bytes of entries; at least one segment (64 KiB) is
  /// used.
  void limit(std::uint64_t bytes);

  enum class Accepted : std::uint8_t { yes, other_version, no_room };
  /// Keeps the version of an object that is not in the table. kUnknown agrees with every version;
  /// the first known one is then kept. To be called before anybody gets a byte of the object. The
  /// same key in another `space` is another object.
  Accepted accept(std::string_view key, std::uint64_t version, std::uint64_t space = 0);
  /// nullopt: not in the table.
  std::optional<std::uint64_t> find(std::string_view key, std::uint64_t space = 0) const;

  std::uint64_t size() const;  // objects

 private:
  struct Entry {
    std::atomic<std::uint64_t> key;      // a hash; 0: free
    std::atomic<std::uint64_t> version;  // kUnknown until known
  };
  struct Memory;
  void start();
  std::uint64_t hash(std::string_view key, std::uint64_t space) const;

  Memory* const memory_;
  std::atomic<std::size_t> segments_;  // that entries may be added to
};

}  // namespace batchfs

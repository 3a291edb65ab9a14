#pragma once
// The inodes that the kernel knows, and the file of each, in one reading of the store.
//
// Every file that is looked up gets a number that no file had before, and keeps it until the kernel
// has forgotten it. So whatever the kernel still keeps of a reading that is gone (names, pages,
// listings), in memory that no daemon knows of, it keeps under numbers that mean nothing else.
//
// The table lies in the session's memory, so the next daemon knows the numbers and how often the
// kernel refers to each. A daemon may be killed between any two instructions: references are
// counted before they are handed out, and a record is complete before it gets its number. An inode
// may thus be kept too long, but never too short.
//
// A record takes 32 bytes, and 12 to 24 more in the indexes of this process.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "fs/ino.h"

namespace batchfs {

/// Not thread-safe.
class KnownInodes {
 public:
  /// Inodes at most.
  static constexpr std::uint32_t kMax = 4 << 20;
  /// Bytes of the session's memory, few of which are touched.
  static const std::size_t kBytes;

  /// In private memory, for tests.
  KnownInodes();
  /// In the file `fd` from `offset` on: zeros, or the table of an earlier daemon. Precondition: no
  /// other daemon uses it any more. Throws no_memory, and corrupt if the table is malformed.
  KnownInodes(int fd, std::uint64_t offset);
  ~KnownInodes();
  KnownInodes(const KnownInodes&) = delete;
  KnownInodes& operator=(const KnownInodes&) = delete;

  struct File {
    std::uint32_t reading = 0;
    FileNumber number = 0;
  };
  std::optional<File> find(Ino ino) const;
  std::optional<Ino> find(const File& file) const;
  /// One more reference of the kernel to the file's inode, which is new if the kernel does not know
  /// it. Throws no_memory when there are kMax.
  Ino refer(const File& file);
  /// The kernel drops references. Returns the reading whose last inode this was, if any.
  std::optional<std::uint32_t> forget(Ino ino, std::uint64_t references);

  /// Did this daemon or an earlier one hand out any number?
  bool has_given() const;
  std::size_t size() const { return size_; }
  /// How many are of a reading.
  std::size_t count(std::uint32_t reading) const;
  /// Nothing is known any more of other readings: their inodes are of no file from now on.
  void keep_only(std::uint32_t reading);

  using Visit = std::function<bool(Ino ino, const File& file)>;
  /// Calls `visit` for the inodes from position `from` on, 0 at first, until it returns false.
  /// Returns the position after the last one; 0: there are no more.
  std::uint32_t visit(std::uint32_t from, const Visit& visit) const;

 private:
  struct Record;
  struct Memory;
  /// Slots by a key of their records: open addressing, at most two thirds full.
  class Index {
   public:
    template <class Matches>
    std::uint32_t find(std::uint64_t hash, Matches&& matches) const;
    /// Room for one more, which add() needs. Throws std::bad_alloc, and then nothing has changed.
    template <class HashOf>
    void make_room(HashOf&& hash_of);
    void add(std::uint64_t hash, std::uint32_t slot);
    template <class HashOf>
    void remove(std::uint64_t hash, std::uint32_t slot, HashOf&& hash_of);

   private:
    std::vector<std::uint32_t> places_;  // slot + 1; 0: free
    std::size_t size_ = 0;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void load();
  void make_room();
  void add(std::uint32_t slot);
  std::uint32_t slot_of(Ino ino) const;
  std::uint32_t slot_of(const File& file) const;
  void remove(std::uint32_t slot);
  std::uint64_t hash_by_ino(std::uint32_t slot) const;
  std::uint64_t hash_by_file(std::uint32_t slot) const;

  Memory* memory_;
  Index by_ino_, by_file_;
  std::vector<std::uint32_t> free_;
  std::map<std::uint32_t, std::size_t> counts_;  // by reading
  std::size_t size_ = 0;
};

}  // namespace batchfs

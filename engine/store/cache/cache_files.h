#pragma once
// A directory of checksummed files: the entries of the disk cache, shared by every process that
// uses it.
//
// An entry is one file, named by the SHA-256 of its key. It is written beside its place and
// renamed, so that readers, which take no lock, see all of it or nothing; no flush is waited for,
// since a file that a crash tore does not match its checksum and is dropped when it is read. The
// least recently used entries are evicted when the directory has reached its limit, by their access
// times, which are set here because many file systems do not. The total size is counted in a file;
// an unclean end leaves the count too high, never too low, and the next eviction, by one process at
// a time, counts anew.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/buffer.h"

namespace batchfs {

/// Thread-safe.
class CacheFiles {
 public:
  struct Options {
    std::uint64_t limit = 0;   // bytes on the disk; 0: none
    double touch_after = 600;  // seconds: the maximum lag of access times
  };

  /// Makes the directory, readable by its owner only, when it does not exist. Throws access_denied
  /// when it belongs to another user or others may write into it, io.
  CacheFiles(const std::string& directory, Options options);
  ~CacheFiles();
  CacheFiles(const CacheFiles&) = delete;
  CacheFiles& operator=(const CacheFiles&) = delete;

  /// The identity of an entry: the SHA-256 of a text. Stores choose their keys, and one cache holds
  /// entries of many stores: with a weaker digest, one store could replace another's entry.
  struct Name {
    std::array<std::uint64_t, 4> words{};
    bool operator==(const Name&) const = default;
  };
  static Name name_of(std::string_view text);

  /// The version of the object, and its size where that is known.
  struct Version {
    std::string text;
    std::uint64_t object_size = kUnknown;
    static constexpr std::uint64_t kUnknown = UINT64_MAX;
  };
  struct Entry {
    Version version;
    Buffer bytes;
  };
  /// nullopt when there is none, when it is larger than `largest`, damaged, or of a version that
  /// `wanted` refuses; the latter two are removed. Never throws for damage on the disk: the store
  /// has the bytes.
  std::optional<Entry> get(const Name& name, std::uint64_t largest = UINT64_MAX,
                           const std::function<bool(const Version&)>& wanted = {});

  /// Is there an entry of at most `largest` bytes? It is not read: it may be damaged.
  bool contains(const Name& name, std::uint64_t largest = UINT64_MAX) const;

  /// Longer versions cannot be kept.
  static constexpr std::size_t kMaxVersionLength = 400;
  /// Writes an entry, over an older one. False when it has no room. Throws io (the disk is full, it
  /// may not be written to).
  bool put(const Name& name, const Version& version, std::span<const std::byte> bytes);

  /// Removes the least recently used entries until nine tenths of the limit are left; nothing when
  /// another process is evicting.
  void evict();

  /// Entries lie in this many folders.
  static constexpr int kFolders = 256;
  /// Called for each entry: its path below the directory, its bytes on the disk, and why it is
  /// damaged; empty: it is not.
  using TakeEntry =
      std::function<void(const std::string& path, std::uint64_t bytes, const std::string& why)>;
  /// Compares the entries of one of the folders of a cache with their checksums, in constant
  /// memory, and changes nothing. Throws not_found where `directory` holds no cache, access_denied,
  /// io.
  static void check_folder(const std::string& directory, int folder, const TakeEntry& take);

  std::uint64_t damaged() const { return damaged_; }
  std::uint64_t evicted() const { return evicted_; }

 private:
  void remove(const Name& name, int file);
  std::string temporary_path();
  std::uint64_t add_usage(std::int64_t bytes);
  void remove_abandoned();

  const std::string directory_;
  const Options options_;
  int root_ = -1;
  std::uint64_t writer_ =
      0;  // random, so that no two processes, on two machines even, write one file
  std::atomic<std::uint64_t> next_{0}, damaged_{0}, evicted_{0};
};

}  // namespace batchfs

#pragma once
// The versions of the objects that a store has read, so that each object has one version for as
// long as the store is open, or the session of a mount lasts.
//
// The table holds 24 bytes an object, see version_table.h, up to a number of bytes. An object that
// finds no room is not remembered: that it changes or vanishes is not noticed. The first one is
// reported, and all such reads are counted.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/store.h"
#include "engine/store/version_table.h"

namespace batchfs {

/// Thread-safe.
class ObjectVersions {
 public:
  struct Options {
    std::uint64_t memory = 96 << 20;  // bytes of the table, at most
    /// Called once, when the table is full; may be empty.
    std::function<void(const std::string&)> warn;
    std::shared_ptr<VersionTable> table;  // of a session; null: one of its own
    std::string space;                    // distinguishes users of one table
  };
  explicit ObjectVersions(Options options);

  /// The version of an object whose store reports none. Only that the object exists is remembered.
  static constexpr std::uint64_t kUnknown = VersionTable::kUnknown;
  /// A hash of the version that the store reports; kUnknown when that is empty.
  std::uint64_t digest(std::string_view version) const {
    return version.empty() ? kUnknown : table_->digest(version);
  }

  /// Remembers the version of an object that is not in the table. False when the table has another
  /// version of it. kUnknown matches every version.
  bool accept(std::string_view key, std::uint64_t version);
  /// nullopt: never read, not remembered, of unknown version, or just being kept by another thread.
  std::optional<std::uint64_t> find(std::string_view key) const {
    const std::optional<std::uint64_t> version = table_->find(key, space_);
    return version == kUnknown ? std::nullopt : version;
  }
  /// Has it been read, whatever its version?
  bool contains(std::string_view key) const { return table_->find(key, space_).has_value(); }

  /// The counters in status.json.
  std::vector<Store::Counter> counters() const;

  /// The errors that every store reports in the same words. `where`: the object.
  static Error changed(const std::string& where);
  static Error vanished(const std::string& where);

 private:
  const std::function<void(const std::string&)> warn_;
  const std::shared_ptr<VersionTable> table_;
  const std::string space_;
  std::atomic<std::uint64_t> not_kept_{0};
};

/// For Store::read_version_async(): a version that no object has. The object's origin is asked,
/// past every cache: the bytes read before, perhaps from a cache, cannot be those that were stored.
inline constexpr const char* kNoVersion = "\"batchfs-none\"";

/// Like Store::read_async(), with kNoVersion.
void read_past_caches(Store& store, const std::string& key, const ByteRange& range, ReadDone done);
/// Passes on only the bytes of a read.
ReadDone as_versioned(Store::VersionedDone done);

/// The user of a version: the store itself, or a cache over it, which has versions of its own.
enum class VersionOwner : char { store = 's', cache = 'c' };

/// The options that a store takes from `config`.
ObjectVersions::Options version_options(const StoreConfig& config,
                                        VersionOwner owner = VersionOwner::store);

}  // namespace batchfs

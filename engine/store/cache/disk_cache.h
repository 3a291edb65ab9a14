#pragma once
// A store that keeps its reads of another one on the local disk, as stored (compressed), for later
// mounts and for other processes.
//
// The unit kept is a read: an object, or the requested range of it, with the object's version (its
// ETag, or the server's substitute). The rules:
//
// - The first time that an object is wanted after the store was opened, the server is asked
//   whether it still has the version that is kept: one short round trip, in which unchanged bytes
//   do not travel. After that, all kept bytes of that version are taken without asking: a mount
//   shows the store as it found it. An object that turns out to have changed in between is
//   Error{stale}.
// - An object deleted on the server while it is kept here is still served from here: its version
//   is the one that the mount began with. When it must be fetched again, it is Error{stale}.
// - With `trust`, chunks are taken without asking at all; metadata is still asked about.
// - Bytes that cannot be decoded, though their checksum fits, arrived damaged: they are fetched
//   again (kNoVersion), and the answer replaces them.
// - That an object is missing is never kept: an object that appears later must be seen, and asking
//   costs the same round trip.
// - Objects of servers that report no version are not kept.
//
// Reading never waits for the disk's writing: a thread writes the bytes, and drops those that it
// cannot keep up with. When the disk is full or fails, one line is logged and the store continues
// without keeping more.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/store/object_versions.h"
#include "engine/store/store.h"

namespace batchfs {

struct DiskCacheOptions {
  std::string directory;
  std::uint64_t limit = 0;  // bytes on the disk; 0: none
  bool trust = false;
  /// A read is done when its bytes are on the disk (or could not be put there): for filling the
  /// cache.
  bool wait_for_disk = false;
  /// Told once, in one line, when keeping has ended. May be empty. Called on the writing thread.
  std::function<void(const std::string&)> warn;
  /// Distinguishes stores beside the URL: the endpoint.
  std::string realm;
  std::uint64_t queue = 128 << 20;  // bytes that may wait for being written
  double touch_after = 600;         // seconds: the maximum lag of the order of use
  ObjectVersions::Options versions = {};
};

/// Throws access_denied or io when the directory cannot be used. The destructor of the returned
/// store completes pending writes.
std::shared_ptr<Store> open_disk_cache(std::shared_ptr<Store> parent, DiskCacheOptions options);

/// Does the disk cache of `store` hold what a read of this range takes? Asks nobody: the entry may
/// be of an older version. nullopt: the store has no disk cache.
std::optional<bool> is_on_disk(const Store& store, const std::string& key, const ByteRange& range);

}  // namespace batchfs

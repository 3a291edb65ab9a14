#pragma once
// A place that copies are written to: objects by key, each written once and whole.
//
// Keys are those of stores ("t2m/c/0/0"). Keys below ".batchfs/" are working files of an unfinished
// output; discard_working_files() removes them. Stores that are read are another interface
// (store.h): they pin versions and cache, which an output must not.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/buffer.h"
#include "engine/store/store.h"

namespace batchfs {

/// The folder of working files in an output.
inline constexpr std::string_view kWorkingFolder = ".batchfs";

/// Thread-safe. Every member throws access_denied, io (with the reason, as a full disk).
class OutputStore {
 public:
  virtual ~OutputStore() = default;

  /// The URL as users typed it, without secrets.
  virtual std::string url() const = 0;

  /// Writes an object: readers see all of it or nothing, also when this process is killed. Replaces
  /// an object of this key. `parts` follow one another.
  virtual void put(const std::string& key, std::span<const std::span<const std::byte>> parts) = 0;
  void put(const std::string& key, std::string_view text);

  /// nullopt: missing.
  virtual std::optional<Buffer> get(const std::string& key) = 0;
  /// Reads `out.size()` bytes from `offset`. Throws corrupt for a shorter or missing object.
  virtual void read_part(const std::string& key, std::uint64_t offset,
                         std::span<std::byte> out) = 0;

  /// Is there nothing but working files?
  virtual bool is_empty() = 0;
  /// Objects put before this call survive a power failure after it.
  virtual void sync() {}
  virtual void discard_working_files() = 0;

  /// Held as long as it lives; other processes are refused meanwhile. nullptr: another process
  /// holds the lock. Outputs that have no locks return one that refuses nobody.
  class Lock {
   public:
    virtual ~Lock() = default;
    /// Removes all traces of the lock; called last.
    virtual void remove() {}
  };
  virtual std::unique_ptr<Lock> lock(const std::string& name) = 0;

  virtual bool is_local() const = 0;
};

/// A path, file://, s3://, gs:// or az://. Nothing is made there before the first put. Throws
/// not_supported for other places, by name.
std::shared_ptr<OutputStore> open_output(const std::string& place, const StoreConfig& config);

/// Opens an output in a local directory, which need not exist.
std::shared_ptr<OutputStore> open_local_output(const std::string& path);

/// The place as typed, for messages: without the signature that an Azure URL may end with.
std::string shown_output(const std::string& url);

}  // namespace batchfs

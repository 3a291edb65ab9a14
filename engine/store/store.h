#pragma once
// A store: bytes by key. Keys are relative paths with '/' ("t2m/c/0/0").
//
// Missing and failed are never confused: a missing object is nullopt, everything else that is not
// the bytes is an Error, and a failed read never becomes fill values.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/error.h"
#include "engine/store/icechunk/options.h"
#include "engine/store/virtual/virtual_options.h"

namespace batchfs {

class AddressQueries;
struct RepositorySigns;
class VersionTable;

/// A run of bytes of an object. `length` may reach past the end: the read is then short.
/// With `from_end`, the last `length` bytes (offset is ignored).
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = UINT64_MAX;
  bool from_end = false;
  /// Bytes that the object may have where all of it is read: a larger one is an Error, and not read
  /// to its end.
  std::uint64_t largest = UINT64_MAX;

  bool is_whole() const { return !from_end && offset == 0 && length == UINT64_MAX; }
};

/// The outcome of a read: the bytes, nothing (missing), or the error.
using ReadOutcome = std::variant<std::optional<Buffer>, std::exception_ptr>;
using ReadDone = std::function<void(ReadOutcome)>;

/// Every member is thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  /// The place as users typed it, without secrets; for messages and store.json.
  virtual std::string url() const = 0;

  /// Reads an object or a range of it. Blocks.
  virtual std::optional<Buffer> read(const std::string& key, ByteRange range = {}) = 0;

  struct PartRead {
    std::size_t bytes;  // read; fewer than requested only at the object's end
    std::uint64_t object_size;
  };
  /// Reads `out.size()` bytes from `offset` into `out`; nullopt when missing. Blocks. Saves the
  /// copy where bytes are used as stored.
  virtual std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                            std::span<std::byte> out) = 0;

  /// Starts a read; `done` is called exactly once, from any thread, possibly before this returns.
  /// The default reads in the calling thread: right for local files, which a decode task reads
  /// itself.
  virtual void read_async(const std::string& key, ByteRange range, ReadDone done);

  /// Does read() answer at local speed, so that a decode task should call it itself?
  virtual bool is_local() const { return false; }

  /// An object's size; nullopt when missing.
  virtual std::optional<std::uint64_t> size(const std::string& key) = 0;

  struct Entry {
    std::string name;  // one path component
    bool is_prefix;    // a directory
  };
  /// The children directly below `prefix` ("" or "a/b", no trailing slash), sorted by name. Throws
  /// not_supported where the store cannot list, no_memory for more names than kMaxListing holds.
  virtual std::vector<Entry> list(const std::string& prefix) = 0;
  virtual bool can_list() const { return true; }

  /// The result of read_version_async().
  struct VersionedRead {
    std::optional<Buffer> bytes;  // nullopt: missing, or unchanged
    bool unchanged = false;       // the object still is the version that the caller knows
    /// Changes when the object does (an ETag); empty: the store does not report one.
    std::string version;
    std::optional<std::uint64_t> object_size;  // if the answer contained it
    std::optional<std::int64_t> modified;      // seconds since 1970, if the answer contained it
  };
  using VersionedDone = std::function<void(std::variant<VersionedRead, std::exception_ptr>)>;
  /// Like read_async(), for callers that keep the result: without bytes when the object still has
  /// the version `known`, unless that is empty. With `known` the object's origin is asked, past
  /// every cache. The default does not know versions.
  virtual void read_version_async(const std::string& key, ByteRange range, const std::string& known,
                                  VersionedDone done);

  /// Returns a number that changes when the bytes of `key` do, even where sizes stay: of the
  /// object's file, of the archive or the file that holds it. The same in every process. 0:
  /// missing; nullopt: not known. Asks the place itself, past caches that may be out of date.
  /// Blocks. Throws stale when it is another version than was first read; later reads are of this
  /// version.
  virtual std::optional<std::uint64_t> state(const std::string& key);

  /// The speed of recent reads.
  struct Speed {
    double latency;  // seconds to the first byte
    double rate;     // bytes per second, of all reads together
    int in_flight;   // reads that are made at a time
  };
  /// For choosing between a whole object and ranges of it. nullopt: ranges are not cheaper, since
  /// the store is local, the server does not support them, or all reads are kept for later.
  virtual std::optional<Speed> speed() const { return std::nullopt; }

  /// For leaving without waiting for a network: reads in flight soon end with Error{interrupted},
  /// later ones at once. May be called more than once; not by a read's callback. Local stores have
  /// nothing to end.
  virtual void stop() {}

  struct Counter {
    std::string name;  // as status.json shows it
    std::uint64_t value;
  };
  /// The store's activity so far: requests, retries, bytes on the wire. Empty where nothing is
  /// counted.
  virtual std::vector<Counter> counters() const { return {}; }

  /// Are the objects fixed when the store is opened (an archive)? Then none appears or vanishes
  /// alone.
  virtual bool is_fixed() const { return false; }

  /// The version of its contents that a store with a history shows.
  struct Revision {
    std::string id;
    std::string chosen_by;  // "branch main"; empty: by its id
    std::uint64_t time;     // when it was written: microseconds since 1970
    std::string message;
  };
  /// nullopt: a store without a history.
  virtual std::optional<Revision> revision() const { return std::nullopt; }

  /// Identifies all contents of the store where these are fixed and metadata does not identify
  /// them; else empty.
  virtual std::string content_id() const { return {}; }

  /// Bytes of the memory budget that the store may take while it is open.
  virtual std::uint64_t held_memory() const { return 0; }
};

/// The answers to a request that mean that the object is missing. Servers may answer "forbidden"
/// (403) for missing objects to clients that may not list.
enum class MissingAnswers {
  find_out,  // 404, and 403 where the server also answers 403 for an object that cannot exist
  only_404,
  also_403,
};

/// The user's options for a store beside its URL. Empty or 0: the default, or the environment's
/// setting.
struct StoreConfig {
  double timeout = 30;   // seconds without progress after which a request has failed
  int retries = 3;       // of one request
  bool anon = false;     // no credentials
  std::string endpoint;  // the URL of an S3-, GCS- or Azure-compatible server
  std::string region, profile;
  bool requester_pays = false;  // agrees to pay for requests (S3)
  MissingAnswers missing = MissingAnswers::find_out;
  std::string cache_dir;         // local cache of stored bytes; empty: none
  std::uint64_t cache_size = 0;  // bytes; 0: no limit but the disk's
  bool cache_trust = false;      // use cached objects without revalidation
  /// Shared caches between the machines and a remote store, in the form of parse_cache_urls();
  /// empty: none. nullopt: those of the environment.
  std::optional<std::vector<std::string>> via;
  bool via_verify = false;    // compare their answers with the checksums that the store names
  bool cache_waits = false;   // a read is done when its bytes are in the cache: for filling it
  bool follow_links = false;  // symbolic links of a local store may lead out of it
  bool redirects = true;      // a web server may send its readers to another address
  bool revalidate = false;    // caches on the way to a web server are to ask it again
  /// Called with a line for the log when the cache can keep nothing more, and when versions are
  /// forgotten: once each, on any thread. May be empty.
  std::function<void(const std::string&)> warn;
  std::uint64_t memory =
      0;  // bytes that the directory of an archive may take; 0: default_memory_budget()
  std::uint64_t version_memory = 0;  // bytes for the versions of objects that were read; 0: 64 MiB
  std::shared_ptr<VersionTable> versions;   // of a session, for these; null: of the store's own
  std::uint64_t version_space = 0;          // of the store in that table
  IcechunkOptions icechunk;                 // for Icechunk repositories
  VirtualOptions outside;                   // for references to files outside of it
  std::shared_ptr<AddressQueries> queries;  // of web addresses that a store refers to
};

/// Opens a place as users type it: a path, file://, http(s)://, s3://, gs:// or az://, also of a
/// zip archive, an Icechunk repository, or a kerchunk reference set (its .json file);
/// `icechunk+URL` and `reference::URL` insist on these. Throws not_found when nothing exists there,
/// access_denied, invalid_argument, not_supported.
std::shared_ptr<Store> open_store(const std::string& url, const StoreConfig& config = {});

/// The repository at a remote `url`, or the reference set of Parquet files, that open_store()
/// opened as `store`, which holds no Zarr metadata: only then is it looked for, since the question
/// takes a round trip, unless `signs` answer it. nullptr where there is none. Throws as
/// open_store().
std::shared_ptr<Store> find_repository(std::shared_ptr<Store> store, const std::string& url,
                                       const StoreConfig& config, RepositorySigns signs);

/// The memory of one listing, counted: of all entries together at most kMaxListing bytes.
class ListingMemory {
 public:
  /// Throws no_memory, `where` is the place.
  void add(const Store::Entry& entry, const std::string& where);

 private:
  std::uint64_t used_ = 0, entries_ = 0;
};

/// Is `key` a safe relative path: no empty component, ".", "..", NUL, leading or trailing slash?
bool is_key(std::string_view key);
/// Throws invalid_argument unless it is.
void check_key(const std::string& key);

}  // namespace batchfs

#pragma once
// The result of verifying a store: counters, and bounded lists of findings.
//
// A finding is something broken. A note is something odd that breaks nothing, such as an object
// below an array that is not a chunk of it. An array that cannot be verified, since this program
// cannot read it, is "not checked".

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace batchfs {

/// The kind of damage, as --json names it.
namespace damage {
inline constexpr const char* kSize = "size";  // a stored size that the metadata rules out
inline constexpr const char* kData = "data";  // does not decode, or a checksum does not match
inline constexpr const char* kShardIndex = "shard index";  // damaged, or an entry that is wrong
inline constexpr const char* kUnreadable = "unreadable";   // the store failed to return the bytes
inline constexpr const char* kMetadata =
    "metadata";  // not valid: the array or group cannot be opened
inline constexpr const char* kCacheEntry = "cache entry";  // of the local cache
}  // namespace damage

struct Finding {
  std::string array;  // path in the store; empty for the root and for cache entries
  std::string chunk;  // "3.0.0"; empty when it is about more than one chunk
  std::string key;    // of the object, or the file of a cache entry
  std::string what;   // one of damage::
  std::string why;
  bool operator==(const Finding&) const = default;
};

struct VerifyNote {
  std::string key, why;
};

struct VerifyReport {
  std::uint64_t arrays = 0;          // verified
  std::uint64_t objects = 0;         // read
  std::uint64_t chunks = 0;          // verified; of sharded arrays the inner chunks
  std::uint64_t missing_chunks = 0;  // not in the store: fill values
  std::uint64_t selected_chunks = 0, known_chunks = 0;  // to verify; not missing, of this share
  std::uint64_t stored_bytes = 0;                       // read
  std::uint64_t decoded_bytes = 0;
  std::uint64_t cache_entries = 0, cache_bytes = 0;
  bool interrupted = false;

  std::uint64_t problems = 0;     // all, also those that are not in the list
  std::vector<Finding> findings;  // by array and chunk
  std::uint64_t note_count = 0;
  std::vector<VerifyNote> notes;
  std::vector<VerifyNote> not_checked;  // arrays by path
};

/// Adds to a report from many threads. The lists keep the first `max_listed` entries each.
class VerifyCollector {
 public:
  explicit VerifyCollector(std::size_t max_listed) : max_listed_(max_listed) {}

  void find(Finding finding);
  void note(std::string key, std::string why);
  void not_checked(std::string array, std::string why);
  void add_object(std::uint64_t stored_bytes);
  void add_bytes(std::uint64_t stored_bytes);
  void add_chunks(std::uint64_t chunks, std::uint64_t decoded_bytes);
  /// `selected` chunks, of which `known` are not missing.
  void add_array(std::uint64_t selected, std::uint64_t known);
  void add_cache_entry(std::uint64_t bytes);
  void interrupt();

  /// The report so far, the lists sorted.
  VerifyReport report() const;

 private:
  const std::size_t max_listed_;
  mutable std::mutex mutex_;
  VerifyReport report_;  // guarded by mutex_
};

/// Merges the reports of the tasks of one scan. `max_listed` as for the collector. Findings of
/// several tasks, such as an array that cannot be listed, count once.
VerifyReport merge_reports(const std::vector<VerifyReport>& reports, std::size_t max_listed);

}  // namespace batchfs

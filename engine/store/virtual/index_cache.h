#pragma once
// The files of a store that locate its chunks (manifests of an Icechunk repository, records of a
// reference set), those that are in use: fetched when a chunk is first looked up there, kept
// decoded, evicted when they exceed their memory.
//
// Decoding takes about a microsecond a reference: it is done one file at a time, on a thread of its
// own unless the store is local. So at most one decompressed file is in memory.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/store/store.h"
#include "engine/store/timer_thread.h"

namespace batchfs {

/// A file of the index, decoded.
struct DecodedIndex {
  std::shared_ptr<const void> contents;
  std::uint64_t memory = 0;  // bytes
};

/// Thread-safe.
class IndexCache {
 public:
  struct Limits {
    std::uint64_t payload;  // bytes of one file, fetched or decompressed: half of --memory
    std::uint64_t memory;   // bytes of the decoded ones
  };
  /// Decodes the file of a key, nullopt where it does not exist. Its exceptions become outcomes of
  /// get(). One call at a time.
  using Decode =
      std::function<DecodedIndex(const std::string& key, const std::optional<Buffer>& file)>;
  /// `name` is that of such files in counters: "manifest".
  IndexCache(std::shared_ptr<Store> store, Limits limits, std::string name, Decode decode);
  /// Stops the store, and waits for requests in flight to end with Error{interrupted}. Not to be
  /// called by a callback.
  ~IndexCache();

  using Outcome = std::variant<std::shared_ptr<const void>, std::exception_ptr>;
  using Done = std::function<void(Outcome)>;
  /// `done` is called once, from any thread that may block; with a local store before get()
  /// returns, unless another thread is loading the file. `bytes`: of the file, as far as is known.
  void get(const std::string& key, std::uint64_t bytes, Done done);

  std::vector<Store::Counter> counters() const;

 private:
  struct Entry {
    std::optional<DecodedIndex> index;  // nullopt: being loaded
    std::uint64_t bytes = 0;
    std::vector<Done> waiting;
    std::list<std::string>::iterator use;  // of a loaded one
  };

  void load(const std::string& key);
  /// `is_last`: a file that cannot be decoded is not read once more, past caches.
  void arrived(const std::string& key, ReadOutcome outcome, bool is_last);
  void finish(const std::string& key, std::variant<DecodedIndex, std::exception_ptr> outcome);
  void start_more();

  const Limits limits_;
  const std::string name_;
  const Decode decode_;
  std::atomic<std::uint64_t> loaded_{0}, evicted_{0};

  std::mutex decoding_;  // one file at a time; taken before mutex_

  mutable std::mutex mutex_;  // guards the fields below; never held while calling out
  std::map<std::string, Entry> entries_;
  std::list<std::string> used_;      // loaded ones, the latest first
  std::uint64_t memory_ = 0;         // of these
  std::deque<std::string> to_load_;  // waiting for room for their files
  std::uint64_t loading_ = 0;        // bytes of files in flight
  int loads_ = 0;
  int under_way_ = 0;  // loads whose end still uses this
  std::condition_variable ended_;

  TimerThread decoder_;
  const std::shared_ptr<Store> store_;
};

}  // namespace batchfs

#pragma once
// Writes bytes that were read into the cache, on a thread of its own.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "engine/store/cache/cache_files.h"
#include "engine/store/store.h"

namespace batchfs {

/// Thread-safe.
class CacheWriter {
 public:
  struct Options {
    std::uint64_t queue;  // bytes that may wait
    bool wait_for_disk;   // readers get their bytes when these are on the disk
    std::function<void(const std::string&)> warn;
  };
  CacheWriter(CacheFiles& files, Options options);
  /// Writes the pending entries.
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  /// Passes `bytes` to `done` and keeps a copy, unless too many wait. Does not block.
  void write(const CacheFiles::Name& name, CacheFiles::Version version, Buffer bytes,
             const ReadDone& done);

  struct Counters {
    std::uint64_t bytes = 0;    // written
    std::uint64_t dropped = 0;  // reads that were not kept
  };
  Counters counters() const;

 private:
  struct Job {
    CacheFiles::Name name;
    CacheFiles::Version version;
    Buffer bytes;
    ReadDone done;  // empty: its reader has the bytes
  };
  bool reserve(std::uint64_t bytes);
  void post(Job job);
  void run();
  void put(const Job& job);

  CacheFiles& files_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::uint64_t waiting_ = 0;  // bytes
  Counters counters_;
  bool stopping_ = false;
  bool broken_ = false;  // the disk failed: nothing more is kept
  std::thread thread_;   // started by the first write: a store may be opened before a fork
};

}  // namespace batchfs

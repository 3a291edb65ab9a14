#include "gpu/reader/process.h"

#include <atomic>

#include <pthread.h>
#include <unistd.h>

namespace batchfs::reader {

namespace {

/// Kept by fork() itself: a child changes it before anything else of it runs.
class KnownProcess {
 public:
  KnownProcess() {
    number().store(::getpid(), std::memory_order_relaxed);
    is_kept_ = ::pthread_atfork(nullptr, nullptr,
                                [] { number().store(::getpid(), std::memory_order_relaxed); }) == 0;
  }
  pid_t get() const { return is_kept_ ? number().load(std::memory_order_relaxed) : ::getpid(); }

 private:
  static std::atomic<pid_t>& number() {
    static std::atomic<pid_t> known;
    return known;
  }
  bool is_kept_ = false;
};

}  // namespace

pid_t this_process() {
  static const KnownProcess known;
  return known.get();
}

}  // namespace batchfs::reader

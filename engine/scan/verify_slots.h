#pragma once
// Bounds the running work of a scan, by memory and by number.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace batchfs {

/// acquire() and wait() are for one thread; release() for any.
class WorkSlots {
 public:
  /// `tick` is called several times a second while a call waits; false: give up.
  WorkSlots(std::uint64_t memory, int max_running, std::function<bool()> tick)
      : memory_(memory), max_running_(max_running), tick_(std::move(tick)) {}

  /// Waits for room. Work that is larger than the memory runs alone. False when `tick` gave up.
  bool acquire(std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    for (;;) {
      lock.unlock();
      if (!tick_()) return false;
      lock.lock();
      const bool has_room = reserved_ <= memory_ && bytes <= memory_ - reserved_;
      if (running_ == 0 || (running_ < max_running_ && has_room)) break;
      released_.wait_for(lock, std::chrono::milliseconds(100));
    }
    ++running_;
    reserved_ += bytes;
    return true;
  }

  void release(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    --running_;
    reserved_ -= bytes;
    released_.notify_one();
  }

  /// Waits until everything acquired is released. Calls `tick`, but never gives up.
  void wait() {
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
      released_.wait_for(lock, std::chrono::milliseconds(100));
      lock.unlock();
      tick_();
      lock.lock();
    }
  }

 private:
  const std::uint64_t memory_;
  const int max_running_;
  const std::function<bool()> tick_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::uint64_t reserved_ = 0;  // guarded by mutex_
  int running_ = 0;             // guarded by mutex_
};

}  // namespace batchfs

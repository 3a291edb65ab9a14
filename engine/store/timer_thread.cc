#include "engine/store/timer_thread.h"

#include <chrono>

namespace batchfs {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void TimerThread::post(std::int64_t time, std::function<void()> work) noexcept {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  items_.push({time, ++posted_, std::move(work)});
  if (items_.top().number != posted_) return;  // the thread wakes early enough as it is
  changed_.notify_one();                       // within the lock: the work may end this object
}

void TimerThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  items_ = {};
}

void TimerThread::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (items_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Clock::time_point time{std::chrono::nanoseconds(items_.top().time)};
    if (time > Clock::now()) {
      changed_.wait_until(lock, time);
      continue;
    }
    const std::function<void()> work = items_.top().work;
    items_.pop();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace batchfs

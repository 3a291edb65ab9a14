#pragma once
// Timed work on a thread that may block, for work that must not run on the HTTP client's thread.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace batchfs {

/// Thread-safe.
class TimerThread {
 public:
  TimerThread() : thread_([this] { run(); }) {}
  ~TimerThread() { stop(); }
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;

  /// Runs `work` at `time` (nanoseconds of the steady clock; 0: now). `work` must not throw. After
  /// stop() it is dropped. noexcept: work that is lost for lack of memory is waited for.
  void post(std::int64_t time, std::function<void()> work) noexcept;

  /// Waits for running work and drops the rest. Not to be called by posted work.
  void stop();

 private:
  struct Item {
    std::int64_t time;
    std::uint64_t number;
    std::function<void()> work;
    bool operator<(const Item& other) const {  // std::priority_queue returns the largest first
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  void run();

  std::mutex mutex_;  // guards the fields below; never held while work runs
  std::condition_variable changed_;
  std::priority_queue<Item> items_;
  std::uint64_t posted_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace batchfs

#include "engine/write/region_runner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>

#include "engine/pipeline/executor.h"
#include "engine/scan/verify_slots.h"

namespace batchfs {

namespace {

/// Beyond these, more regions only spread the reads; where nothing waits for a network, they only
/// take memory that was not in a cache.
constexpr int kMaxRegions = 64;

int max_regions(const RegionLimits& limits) {
  return limits.shared_threads ? std::min(kMaxRegions, 2 * limits.write_threads + 2) : kMaxRegions;
}

class RegionRunner {
 public:
  RegionRunner(const RegionLimits& limits, const std::function<bool()>& tick)
      : slots_(limits.memory, max_regions(limits),
               [&tick, this] {
                 if (!tick()) stopped_ = true;
                 return !failed_ && !stopped_;
               }),
        writes_(limits.write_threads) {
    if (!limits.shared_threads) reads_.emplace(limits.read_threads);
  }
  /// Running work uses this object.
  ~RegionRunner() { slots_.wait(); }
  RegionRunner(const RegionRunner&) = delete;
  RegionRunner& operator=(const RegionRunner&) = delete;

  bool run(const std::function<std::shared_ptr<RegionWork>()>& next) {
    bool all = true;
    while (std::shared_ptr<RegionWork> work = next()) {
      if (!slots_.acquire(work->memory)) {
        all = false;
        break;
      }
      start(std::make_shared<Running>(std::move(work), number_++));
    }
    slots_.wait();
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    return all && !skipped_;
  }

 private:
  struct Running {
    Running(std::shared_ptr<RegionWork> its_work, std::int64_t its_number)
        : work(std::move(its_work)), number(its_number) {}
    const std::shared_ptr<RegionWork> work;
    const std::int64_t number;
    std::atomic<std::size_t> left{0};
    std::atomic<bool> broken{false};
  };
  using RunningPtr = std::shared_ptr<Running>;

  template <class Work>
  void guarded(const RunningPtr& running, Work&& work) {
    if (stopped_ && !running->broken) skipped_ = true;
    if (failed_ || stopped_) running->broken = true;
    if (running->broken) return;
    try {
      work();
    } catch (...) {
      running->broken = true;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      failed_ = true;
    }
  }

  void start(const RunningPtr& running) {
    guarded(running, [&] { running->work->begin(); });
    Executor& executor = reads_ ? *reads_ : writes_;
    phase(running, executor, 2 * running->number + 2, running->work->read_count,
          running->work->read, [this, running] { start_writes(running); });
  }

  void start_writes(const RunningPtr& running) {
    phase(running, writes_, 2 * running->number + 1, running->work->write_count,
          running->work->write, [this, running] { finish(running); });
  }

  /// Posts `count` items and calls `then` after the last one, on its thread.
  void phase(const RunningPtr& running, Executor& executor, std::int64_t urgency, std::size_t count,
             const std::function<void(std::size_t)>& item, std::function<void()> then) {
    if (count == 0 || running->broken) return then();
    running->left = count;
    const auto next = std::make_shared<std::function<void()>>(std::move(then));
    for (std::size_t i = 0; i < count; ++i)
      executor.post(urgency, [this, running, &item, i, next] {
        guarded(running, [&] { item(i); });
        if (--running->left == 0) (*next)();
      });
  }

  void finish(const RunningPtr& running) {
    guarded(running, [&] { running->work->done(); });
    const std::uint64_t memory = running->work->memory;
    // destroys the functions' captures before their memory is released
    running->work->begin = nullptr;
    running->work->read = running->work->write = nullptr;
    running->work->done = nullptr;
    slots_.release(memory);
  }

  std::mutex mutex_;          // guards error_
  std::exception_ptr error_;  // the first
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopped_{false};  // by `tick`
  std::atomic<bool> skipped_{false};  // work, since it was stopped
  std::int64_t number_ = 0;
  WorkSlots slots_;
  Executor writes_;
  std::optional<Executor> reads_;  // last: its work posts to the others
};

}  // namespace

bool run_regions(const RegionLimits& limits,
                 const std::function<std::shared_ptr<RegionWork>()>& next,
                 const std::function<bool()>& tick) {
  return RegionRunner(limits, tick).run(next);
}

}  // namespace batchfs

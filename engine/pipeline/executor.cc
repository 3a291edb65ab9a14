#include "engine/pipeline/executor.h"

#include <chrono>
#include <exception>

#include <sys/resource.h>

#include "engine/base/blocked_signals.h"
#include "engine/base/system_error.h"

namespace batchfs {

namespace {

/// Makes the calling thread yield to the reader's program and to the threads that answer the
/// kernel. At equal priority, one of those that wakes up may wait until the next timer tick, which
/// is up to 4 ms away: readers got 9 to 15 % fewer batches on two cores, a seventh of which were
/// idle meanwhile. Nobody starves: a reader that waits for a batch leaves its processor.
void yield_to_readers() {
  constexpr int kNicer = 5;
  // For the calling thread, in Linux. Lower priority is always allowed.
  ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer);
}

}  // namespace

Executor::Executor(int threads) : max_threads_(threads) {
  const std::lock_guard lock(mutex_);
  start_thread();
}

Executor::~Executor() {
  stop();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    posted_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
}

/// Precondition: mutex_ is held. Signals other than those of faults are left to the process's other
/// threads.
void Executor::start_thread() {
  const BlockedSignals blocked{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  try {
    workers_.emplace_back([this] { run(); });
    ++waiting_;
  } catch (const std::exception&) {
    if (workers_.empty()) throw explain(std::current_exception());
  }
}

void Executor::post(Urgency urgency, std::function<void()> work) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    items_.push({urgency, last_number_++, std::move(work)});
    if (items_.size() > waiting_ && workers_.size() < static_cast<std::size_t>(max_threads_))
      start_thread();
  }
  posted_.notify_one();
}

void Executor::run() {
  yield_to_readers();
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return ending_ || !items_.empty(); });
    --waiting_;
    if (items_.empty()) return;
    // priority_queue::top is const; the item is popped right away, so moving out of it is safe.
    std::function<void()> work = std::move(const_cast<Item&>(items_.top()).work);
    items_.pop();
    ++running_;
    lock.unlock();
    work();
    work = nullptr;  // its captures are destroyed before stop() may return
    lock.lock();
    ++waiting_;
    --running_;
    if (running_ == 0 && items_.empty()) idle_.notify_all();
  }
}

bool Executor::stop(double seconds) {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return running_ == 0 && items_.empty(); };
  if (seconds > 0) {
    if (!idle_.wait_for(lock, std::chrono::duration<double>(seconds), idle)) return false;
  } else {
    idle_.wait(lock, idle);
  }
  stopped_ = true;
  return true;
}

}  // namespace batchfs

#include "engine/pipeline/executor.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/blocked_signals.h"
#include "engine/base/error.h"
#include "engine/base/system_error.h"
#include "engine/pipeline/thread_priority.h"
#include "engine/pipeline/worker_pool.h"

namespace batchfs {

/// The workers of the executors that share them.
struct Executor::Workers {
  /// Throws no_memory where the system refuses the first.
  Workers(int threads, Threads kind);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void add(Executor* executor);
  bool start_one();
  Executor* next();
  bool lacks_worker() const;
  void run() noexcept;
  void run_item(Executor& executor, std::unique_lock<std::mutex>& lock);

  const int count;
  WorkerPool* const pool;            // null: own threads
  std::mutex mutex;                  // guards the members below, and the executors' as they say
  std::condition_variable posted;    // notified for each item, and at the end
  std::condition_variable changed;   // notified when `used` has
  std::vector<Executor*> executors;  // the last that got a worker is the last
  int started = 0, waiting = 0;      // workers; those that wait for work, or are about to
  int used = 0;                      // workers of the pool
  bool ending = false;
  std::vector<std::thread> own;
};

Executor::Workers::Workers(int threads, Threads kind)
    : count(threads), pool(kind == Threads::pooled ? WorkerPool::of_process() : nullptr) {
  started = waiting = 1;
  if (!start_one()) throw Error(ErrorCode::no_memory, describe_thread_limit());
}

/// Precondition: no item is queued or runs.
Executor::Workers::~Workers() {
  {
    std::unique_lock lock(mutex);
    ending = true;
    posted.notify_all();
    changed.wait(lock, [this] { return used == 0; });
  }
  for (std::thread& thread : own) thread.join();
}

void Executor::Workers::add(Executor* executor) {
  const std::lock_guard lock(mutex);
  executors.push_back(executor);
}

/// Has a worker run items. False where the system refuses it. Precondition: `started` and `waiting`
/// count it; the mutex is not held.
bool Executor::Workers::start_one() {
  if (pool == nullptr) {
    const BlockedSignals blocked{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    const std::lock_guard lock(mutex);
    try {
      own.emplace_back([this] {
        lower_thread_priority();
        run();
      });
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
  {
    const std::lock_guard lock(mutex);
    ++used;
  }
  const auto ended = [this] {
    const std::lock_guard lock(mutex);
    --used;
    changed.notify_all();
  };
  if (pool->run([this] { run(); }, ended)) return true;
  ended();
  return false;
}

/// The executor that gets a worker. Null where those with work have all that they may.
/// Precondition: the mutex is held.
Executor* Executor::Workers::next() {
  auto chosen = executors.end();
  for (auto it = executors.begin(); it != executors.end(); ++it) {
    const Executor& each = **it;
    if (each.items_.empty() || each.running_ == each.threads_) continue;
    if (chosen == executors.end() ||
        each.running_ * (*chosen)->threads_ < (*chosen)->running_ * each.threads_)
      chosen = it;
  }
  if (chosen == executors.end()) return nullptr;
  std::rotate(chosen, chosen + 1, executors.end());
  return executors.back();
}

/// Whether items could run for which no worker waits. Precondition: the mutex is held.
bool Executor::Workers::lacks_worker() const {
  if (started == count) return false;
  std::size_t items = 0;
  for (const Executor* each : executors)
    items +=
        std::min(each->items_.size(), static_cast<std::size_t>(each->threads_ - each->running_));
  return items > static_cast<std::size_t>(waiting);
}

/// A worker's work: items, until the end.
void Executor::Workers::run() noexcept {
  std::unique_lock lock(mutex);
  for (;;) {
    Executor* executor = nullptr;
    posted.wait(lock, [&] { return (executor = next()) != nullptr || ending; });
    --waiting;
    if (executor == nullptr) return;
    run_item(*executor, lock);
    ++waiting;
  }
}

void Executor::Workers::run_item(Executor& executor, std::unique_lock<std::mutex>& lock) {
  auto item = executor.items_.extract(executor.items_.begin());
  std::function<void()> work = std::move(item.mapped());
  ++executor.running_;
  lock.unlock();
  work();
  work = nullptr;  // its captures are destroyed before stop() may return
  lock.lock();
  --executor.running_;
  if (executor.is_idle()) executor.idle_.notify_all();
}

Executor::Executor(int threads, Threads kind)
    : workers_(std::make_shared<Workers>(threads, kind)), threads_(threads) {
  workers_->add(this);
}

Executor::Executor(const Executor& host, int threads)
    : workers_(host.workers_), threads_(std::min(threads, host.threads_)) {
  workers_->add(this);
}

Executor::~Executor() {
  stop();
  const std::lock_guard lock(workers_->mutex);
  std::erase(workers_->executors, this);
}

Executor::Ticket Executor::post(Urgency urgency, std::function<void()> work) noexcept {
  // The work may run, and this executor end, before this returns.
  const std::shared_ptr<Workers> workers = workers_;
  bool starts = false;
  Ticket ticket{urgency};
  {
    const std::lock_guard lock(workers->mutex);
    if (stopped_) return {};
    ticket.number = ++last_number_;
    items_.emplace(ticket, std::move(work));
    starts = workers->lacks_worker();
    workers->started += starts;
    workers->waiting += starts;
  }
  workers->posted.notify_one();
  if (!starts || workers->start_one()) return ticket;
  const std::lock_guard lock(workers->mutex);
  --workers->started;
  --workers->waiting;
  return ticket;
}

void Executor::withdraw(const Ticket& ticket) noexcept {
  std::map<Ticket, std::function<void()>>::node_type item;  // is destroyed without the lock
  const std::lock_guard lock(workers_->mutex);
  item = items_.extract(ticket);
  if (!item.empty() && is_idle()) idle_.notify_all();
}

bool Executor::stop(double seconds) {
  std::unique_lock lock(workers_->mutex);
  const auto idle = [this] { return is_idle(); };
  if (seconds > 0) {
    if (!idle_.wait_for(lock, std::chrono::duration<double>(seconds), idle)) return false;
  } else {
    idle_.wait(lock, idle);
  }
  stopped_ = true;
  return true;
}

}  // namespace batchfs

#include "engine/pipeline/worker_pool.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <unistd.h>

#include "engine/base/blocked_signals.h"
#include "engine/base/sanitizers.h"
#include "engine/pipeline/thread_priority.h"

#if BATCHFS_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace batchfs {

namespace {

constexpr int kMaxWorkers = 4096;

// ThreadSanitizer does not see how oneTBB, which is not instrumented, hands a ticket to a worker.
void hand_over([[maybe_unused]] void* pool) {
#if BATCHFS_THREAD_SANITIZER
  __tsan_release(pool);
#endif
}
void take_over([[maybe_unused]] void* pool) {
#if BATCHFS_THREAD_SANITIZER
  __tsan_acquire(pool);
#endif
}

/// Each refusal of oneTBB uses up an arena, so a thread that ends at once is tried first.
bool system_starts_threads() {
  const BlockedSignals blocked;
  try {
    std::thread([] {}).join();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

struct WorkerPool::State {
  struct Job {
    std::function<void()> work, ended;
  };

  void serve() noexcept;
  bool start_worker();

  /// oneTBB's own limit is one less than cores. Set once for the process: of several limits, the
  /// smallest counts.
  tbb::global_control limit{
      tbb::global_control::max_allowed_parallelism,
      static_cast<std::size_t>(tbb::info::default_concurrency() + kMaxWorkers)};

  /// Held while a worker is launched; guards the members up to `mutex`. Lock order: before `mutex`.
  std::mutex starting;
  std::size_t launched = 0;
  /// Are not destroyed: workers do not leave theirs, and the end of one whose worker was refused
  /// would wait for it.
  std::deque<tbb::task_arena> arenas;

  std::mutex mutex;                // guards the members below
  std::condition_variable posted;  // notified for each job
  std::condition_variable begun;   // notified when `begun_count` has changed
  std::deque<Job> jobs;            // not yet taken
  std::size_t idle = 0;            // workers without a job, and those that are about to begin
  std::size_t begun_count = 0;
};

/// Has a name, so that tests/tsan.supp can name it.
struct WorkerPool::Ticket {
  State* state;
  [[gnu::noinline]] void operator()() const noexcept {
    take_over(state);
    state->serve();
  }
};

WorkerPool* WorkerPool::of_process() {
  static std::atomic<pid_t> process{0};
  pid_t owner = 0;
  const pid_t self = ::getpid();
  if (!process.compare_exchange_strong(owner, self) && owner != self) return nullptr;
  static auto* const pool = new WorkerPool;  // never destroyed: workers outlive main()
  return pool;
}

WorkerPool::WorkerPool() : state_(new State) {}

bool WorkerPool::run(std::function<void()> work, std::function<void()> ended) {
  const auto post = [&] {
    state_->jobs.push_back({std::move(work), std::move(ended)});
    state_->posted.notify_one();
  };
  const auto has_idle = [&] { return state_->idle > state_->jobs.size(); };
  {
    const std::lock_guard lock(state_->mutex);
    if (has_idle()) return post(), true;
  }
  const std::lock_guard start(state_->starting);
  {
    const std::lock_guard lock(state_->mutex);
    if (has_idle()) return post(), true;
  }
  if (!state_->start_worker()) return false;
  const std::lock_guard lock(state_->mutex);
  ++state_->idle;
  return post(), true;
}

/// False where the system refuses it. Precondition: `starting` is held.
bool WorkerPool::State::start_worker() {
  if (!system_starts_threads()) return false;
  if (arenas.size() == kMaxWorkers) return false;  // oneTBB would not launch it
  {
    // Until it has begun, the last worker might launch this one, where no exception is caught.
    std::unique_lock lock(mutex);
    begun.wait(lock, [this] { return begun_count == launched; });
  }
  // A worker inherits which signals are blocked.
  const BlockedSignals blocked{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  hand_over(this);
  try {
    arenas.emplace_back(1, /*reserved_for_masters=*/0).enqueue(Ticket{this});
  } catch (const std::exception&) {
    return false;
  }
  ++launched;
  return true;
}

/// A worker's life.
void WorkerPool::State::serve() noexcept {
  lower_thread_priority();
  std::unique_lock lock(mutex);
  ++begun_count;
  begun.notify_all();
  for (;;) {
    posted.wait(lock, [this] { return !jobs.empty(); });
    Job job = std::move(jobs.front());
    jobs.pop_front();
    --idle;
    lock.unlock();
    job.work();
    job.work = nullptr;
    lock.lock();
    ++idle;
    lock.unlock();
    job.ended();
    job.ended = nullptr;
    lock.lock();
  }
}

}  // namespace batchfs

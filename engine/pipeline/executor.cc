#include "engine/pipeline/executor.h"

#include <chrono>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace batchfs {

namespace {
// ThreadSanitizer does not see how TBB, which is not instrumented, hands a task to a worker.
void handing_over([[maybe_unused]] void* executor) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(executor);
#endif
}
void taken_over([[maybe_unused]] void* executor) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(executor);
#endif
}
}  // namespace

/// What is enqueued. Named and not inlined, so that tests/tsan.supp can name it.
struct Executor::Tick {
  Executor* executor;
  [[gnu::noinline]] void operator()() const { executor->tick(); }
};

struct Executor::Arena {
  explicit Arena(int threads)
      // No outside thread ever joins the arena, so it needs as many workers as it has slots.
      : control(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads) + 1),
        arena(threads, 0) {}
  tbb::global_control control;
  tbb::task_arena arena;
};

Executor::Executor(int threads) : threads_(threads), arena_(std::make_unique<Arena>(threads)) {}

Executor::~Executor() { stop(); }

void Executor::post(Urgency urgency, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    items_.push({urgency, posted_++, std::move(work)});
    ++ticks_;
  }
  handing_over(this);
  arena_->arena.enqueue(Tick{this});
}

void Executor::tick() {
  taken_over(this);
  std::function<void()> work;
  {
    const std::lock_guard lock(mutex_);
    if (!items_.empty()) {
      // priority_queue::top is const; the item is popped right away, so moving out of it is safe.
      work = std::move(const_cast<Item&>(items_.top()).work);
      items_.pop();
    }
  }
  if (work) work();
  work = nullptr;  // what it captured goes before stop() may return
  const std::lock_guard lock(mutex_);
  if (--ticks_ == 0) idle_.notify_all();
}

bool Executor::stop(double seconds) {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return ticks_ == 0; };
  if (seconds > 0) {
    if (!idle_.wait_for(lock, std::chrono::duration<double>(seconds), idle)) return false;
  } else {
    idle_.wait(lock, idle);
  }
  stopped_ = true;
  return true;
}

}  // namespace batchfs

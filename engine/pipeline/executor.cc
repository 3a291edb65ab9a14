#include "engine/pipeline/executor.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

namespace batchfs {

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
    if (stopping_) return;
    items_.push({urgency, posted_++, std::move(work)});
    ++ticks_;
  }
  arena_->arena.enqueue([this] { tick(); });
}

void Executor::tick() {
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

void Executor::stop() {
  std::priority_queue<Item> dropped;
  std::unique_lock lock(mutex_);
  stopping_ = true;
  dropped.swap(items_);
  idle_.wait(lock, [this] { return ticks_ == 0; });
  lock.unlock();  // what the dropped items captured may post or lock
}

}  // namespace batchfs

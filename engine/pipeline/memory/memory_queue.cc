#include "engine/pipeline/memory/memory_queue.h"

#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"
#include "engine/pipeline/engine_errors.h"
#include "engine/telemetry/trace.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kPause = 5'000'000;  // nanoseconds between two looks at the queue

}  // namespace

void MemoryQueue::push(MemoryWaiter waiter) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      if (waiters_.empty()) {
        last_used_ = UINT64_MAX;
        came_back_ = Trace::now();
      }
      waiters_.push_back(std::make_shared<MemoryWaiter>(std::move(waiter)));
    }
  }
  // It was moved from if it is queued.
  if (waiter.granted)
    waiter.granted({}, ending_error());
  else
    ticker_.arm(kPause);
}

bool MemoryQueue::empty() const {
  const std::lock_guard lock(mutex_);
  return waiters_.empty();
}

std::size_t MemoryQueue::readers() const {
  std::vector<std::shared_ptr<MemoryWaiter>> waiters;
  {
    const std::lock_guard lock(mutex_);
    waiters.assign(waiters_.begin(), waiters_.end());
  }
  std::size_t sum = 0;
  for (const auto& waiter : waiters) sum += waiter->readers();
  return sum;
}

std::shared_ptr<MemoryWaiter> MemoryQueue::first() const {
  const std::lock_guard lock(mutex_);
  return waiters_.empty() ? nullptr : waiters_.front();
}

/// False when stop() took it.
bool MemoryQueue::pop(const std::shared_ptr<MemoryWaiter>& first) {
  const std::lock_guard lock(mutex_);
  if (waiters_.empty() || waiters_.front() != first) return false;
  waiters_.pop_front();
  return true;
}

void MemoryQueue::serve() {
  while (const std::shared_ptr<MemoryWaiter> waiter = first()) {
    if (waiter->give_up()) {
      pop(waiter);
      continue;
    }
    Budget::Reservation memory = environment_.reserve(waiter->bytes);
    const bool failed = has_lost_patience(static_cast<bool>(memory));
    if (!memory && !failed) break;
    if (!pop(waiter)) break;
    if (memory)
      waiter->granted(std::move(memory), nullptr);
    else
      waiter->granted({}, std::make_exception_ptr(no_memory(waiter->bytes)));
  }
  if (!empty()) ticker_.arm(kPause);
}

bool MemoryQueue::has_lost_patience(bool served) {
  const std::uint64_t used = budget_.used() + budget_.outside(), now = Trace::now();
  // Work in progress ends by itself, even if its store does not answer: only readers may hold
  // memory for ever.
  const bool hope = served || environment_.is_at_work();
  const std::lock_guard lock(mutex_);
  if (hope || used < last_used_) came_back_ = now;
  last_used_ = used;
  return now - came_back_ >= patience_;
}

void MemoryQueue::stop() {
  std::deque<std::shared_ptr<MemoryWaiter>> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(waiters_);
  }
  for (const auto& waiter : left) waiter->granted({}, ending_error());
}

Error MemoryQueue::no_memory(std::uint64_t bytes) const {
  const std::uint64_t outside = budget_.outside();
  return Error(
      ErrorCode::no_memory,
      fmt::format(
          "there is no room for {}: {} of the memory budget of {} is in use{}; close or unmap "
          "batches that are done with, or give more with --memory",
          format_size(bytes), format_size(budget_.used()), format_size(budget_.limit()),
          outside > 0
              ? " and " + format_size(outside) + " in files that were closed but are still mapped"
              : ""));
}

}  // namespace batchfs

#include "engine/pipeline/waits/waiters.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/pipeline/engine_errors.h"
#include "engine/telemetry/trace.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kMinPause = 10'000'000, kMaxPause = 1'000'000'000;  // nanoseconds

}  // namespace

WaiterId Waiters::add(Waiter& waiter) {
  WaiterId id;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return 0;
    id = ++last_id_;
    waiters_.emplace(id, std::move(waiter));
  }
  arm();
  return id;
}

std::optional<Waiter> Waiters::take(WaiterId id) {
  const std::lock_guard lock(mutex_);
  const auto it = waiters_.find(id);
  if (it == waiters_.end()) return std::nullopt;
  std::optional<Waiter> waiter = std::move(it->second);
  waiters_.erase(it);
  return waiter;
}

bool Waiters::contains(WaiterId id) const {
  const std::lock_guard lock(mutex_);
  return waiters_.contains(id);
}

std::size_t Waiters::count() const {
  const std::lock_guard lock(mutex_);
  return waiters_.size();
}

void Waiters::cancel(WaiterId id) {
  fail(id, std::make_exception_ptr(Error(ErrorCode::interrupted, "the reader went away")));
}

void Waiters::fail(WaiterId id, std::exception_ptr error) {
  const std::optional<Waiter> waiter = take(id);
  if (!waiter) return;
  if (waiter->on_leave) waiter->on_leave(id);
  waiter->done(nullptr, error);
}

void Waiters::expire() {
  if (max_wait_ == UINT64_MAX) return;
  const std::uint64_t now = Trace::now();
  std::vector<WaiterId> overdue;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, waiter] : waiters_)
      if (now - std::min(now, waiter.since) >= max_wait_) overdue.push_back(id);
  }
  for (const WaiterId id : overdue) {
    ++counters_.errors;
    const std::string why = fmt::format("not ready after {:.4g} seconds (--wait)",
                                        static_cast<double>(max_wait_) * 1e-9);
    log_.error("a reader timed out: " + why);
    fail(id, std::make_exception_ptr(Error(ErrorCode::timed_out, why)));
  }
  if (count() > 0) arm();
}

void Waiters::stop() {
  std::vector<WaiterId> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, waiter] : waiters_) left.push_back(id);
  }
  for (const WaiterId id : left) fail(id, ending_error());
}

/// Deadlines are met within an eighth of the time, but not looked for all the time.
void Waiters::arm() {
  if (max_wait_ != UINT64_MAX) ticker_.arm(std::clamp(max_wait_ / 8, kMinPause, kMaxPause));
}

}  // namespace batchfs

#include "tools/service/refresher.h"

#include <optional>
#include <utility>

#include "engine/base/blocked_signals.h"
#include "engine/base/error.h"

namespace batchfs {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSweepPause = std::chrono::seconds(1);

std::exception_ptr end_error() {
  return std::make_exception_ptr(Error(ErrorCode::interrupted, "batchfs is ending"));
}

}  // namespace

Refresher::Refresher(Log& log) : state_(std::make_shared<State>()) {
  const BlockedSignals blocked;
  thread_ = std::thread([state = state_, &log] { run(*state, log); });
}

Refresher::~Refresher() {
  constexpr double kYear = 365 * 86400;  // seconds
  if (thread_.joinable()) stop(kYear);
}

void Refresher::begin(Options options) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->options = std::move(options);
  }
  state_->changed.notify_all();
}

void Refresher::ask(bool force, Done done) {
  std::exception_ptr refusal;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) {
      refusal = end_error();
    } else if (!state_->options) {
      refusal = std::make_exception_ptr(
          Error(ErrorCode::not_supported, "batchfs is still starting; try again in a moment"));
    } else {
      state_->waiting.push_back(std::move(done));
      state_->forced = state_->forced || force;
    }
  }
  if (refusal) return done("", refusal);
  state_->changed.notify_all();
}

void Refresher::sweep_soon() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->sweep_asked = true;
  }
  state_->changed.notify_all();
}

bool Refresher::stop(double seconds) {
  std::vector<Done> waiting;
  bool ended = true;
  {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    waiting.swap(state_->waiting);
    if (thread_.joinable())
      ended = state_->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                       [this] { return state_->ended; });
  }
  for (const Done& done : waiting) done("", end_error());
  if (!thread_.joinable()) return ended;
  if (ended)
    thread_.join();
  else
    thread_.detach();
  return ended;
}

void Refresher::run(State& state, Log& log) {
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&state] { return state.stopping || state.options; });
  if (!state.stopping) {
    lock.unlock();
    work(state, *state.options, log);
    lock.lock();
  }
  state.ended = true;
  for (const Done& done : std::exchange(state.waiting, {})) {
    lock.unlock();
    done("", end_error());
    lock.lock();
  }
  state.changed.notify_all();
}

/// Until it is to stop.
void Refresher::work(State& state, const Options& options, Log& log) {
  const auto every = std::chrono::duration_cast<Clock::duration>(options.every);
  const auto next_after = [&](Clock::time_point now) {
    return every.count() > 0 ? std::optional(now + every) : std::nullopt;
  };
  std::optional<Clock::time_point> next = next_after(Clock::now()), sweep = Clock::now();
  std::unique_lock lock(state.mutex);
  while (!state.stopping) {
    const auto is_woken = [&state] {
      return state.stopping || state.sweep_asked || !state.waiting.empty();
    };
    const auto until = next && sweep ? std::min(*next, *sweep) : next ? next : sweep;
    if (until)
      state.changed.wait_until(lock, *until, is_woken);
    else
      state.changed.wait(lock, is_woken);
    if (state.stopping) break;
    const Clock::time_point now = Clock::now();
    const std::vector<Done> asked = std::exchange(state.waiting, {});
    const bool force = std::exchange(state.forced, false);
    if (std::exchange(state.sweep_asked, false)) sweep = now;
    lock.unlock();
    if (!asked.empty() || (next && now >= *next)) {
      std::string changes;
      std::exception_ptr error;
      try {
        changes = options.refresh(force);
      } catch (...) {
        error = std::current_exception();
        log.warning(std::string("the store could not be read again, what is served stays as it "
                                "was: ") +
                    error_of(error).what());
      }
      for (const Done& done : asked) done(changes, error);
      next = next_after(Clock::now());
      sweep = Clock::now();
    }
    if (sweep && Clock::now() >= *sweep)
      sweep = options.sweep() ? std::optional(Clock::now() + kSweepPause) : std::nullopt;
    lock.lock();
  }
}

}  // namespace batchfs

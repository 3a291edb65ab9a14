#pragma once
// A credential that expires: fetched once, handed to everyone, fetched again ahead of its end.

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/store/store_environment.h"

namespace batchfs {

template <class T>
struct Expiring {
  T value;
  std::optional<WallTime> expires;  // nullopt: never
};

/// Thread-safe. While the value is still good but near its end, one caller fetches the next and the
/// others keep using it; when that fails, the old one is used until it has expired.
template <class T>
class Refreshing {
 public:
  using Fetch = std::function<Expiring<T>()>;
  using Now = std::function<WallTime()>;

  Refreshing(Fetch fetch, Now now) : fetch_(std::move(fetch)), now_(std::move(now)) {}

  /// May block in `fetch`, and throws what that throws.
  T get() {
    {
      const std::lock_guard lock(mutex_);
      if (current_ && !near_end()) return current_->value;
      if (current_ && usable() && (fetching_ || now_() < try_again_)) return current_->value;
      fetching_ = true;
    }
    return fetch_next(/*forced=*/false);
  }

  /// Fetches although the value has not expired: the server reports that it has.
  T refresh() { return fetch_next(/*forced=*/true); }

 private:
  static constexpr std::chrono::seconds kAhead{300};  // as AWS's and Google's libraries
  static constexpr std::chrono::seconds kMargin{15};  // for the request to arrive
  static constexpr std::chrono::seconds kPause{30};   // after a refresh that failed

  bool near_end() const { return current_->expires && now_() + kAhead >= *current_->expires; }
  bool usable() const { return !current_->expires || now_() + kMargin < *current_->expires; }

  T fetch_next(bool forced) {
    const std::lock_guard one_at_a_time(fetch_mutex_);
    {
      const std::lock_guard lock(mutex_);
      if (!forced && current_ && !near_end()) return current_->value;  // another caller was faster
    }
    try {
      Expiring<T> next = fetch_();
      const std::lock_guard lock(mutex_);
      fetching_ = false;
      // A value that is short-lived from the start is not fetched anew for each request.
      try_again_ = now_() + kPause;
      current_ = std::move(next);
      return current_->value;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      fetching_ = false;
      try_again_ = now_() + kPause;
      if (forced || !current_ || !usable()) throw;
      return current_->value;
    }
  }

  const Fetch fetch_;
  const Now now_;
  std::mutex fetch_mutex_;  // taken before mutex_
  std::mutex mutex_;        // guards the fields below
  std::optional<Expiring<T>> current_;
  bool fetching_ = false;
  WallTime try_again_{};
};

}  // namespace batchfs

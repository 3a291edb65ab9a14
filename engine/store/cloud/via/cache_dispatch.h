#pragma once
// Chooses a shared cache or the service itself for each request that a cache may answer. When no
// cache is usable, the service gets few of these requests at a time: caches that fail must not
// become a stampede on it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/cloud/via/shared_caches.h"
#include "engine/store/http/latency_quantile.h"

namespace batchfs {

/// The caches' failures of one read so far.
struct CacheRoute {
  std::vector<std::size_t> refused;  // caches that are not asked again
  bool past_caches = false;          // ask only the service: a cache reported the object missing
};

/// Not thread-safe, but for caches(). Times are nanoseconds of the steady clock.
class CacheDispatch {
 public:
  /// `caches` may be null: then everything goes to the service.
  explicit CacheDispatch(std::shared_ptr<SharedCaches> caches)
      : caches_(std::move(caches)), heard_(caches_ != nullptr ? caches_->size() : 0) {}

  SharedCaches* caches() const { return caches_.get(); }

  struct Target {
    std::optional<std::size_t> cache;
    bool is_uncached = false;  // no cache was usable; call left() at its end
    bool must_wait = false;    // the service has too many of these
  };
  /// Sets the request's gateway where a cache is chosen. `limit`: requests that the service may
  /// have in flight; `offset`: of the first byte that is read.
  Target choose(const CacheRoute& route, HttpRequest& request, std::uint64_t offset,
                std::uint64_t limit, std::int64_t now);

  /// A request of Target::is_uncached has ended.
  void left() { --uncached_; }
  /// The number of such requests that may still be sent.
  std::uint64_t room(std::uint64_t limit) const;

  /// A usable answer, whose first bytes came after `latency`.
  void answered(std::size_t cache, const HttpResponse& response, std::int64_t latency,
                std::int64_t now);
  /// An answer of `cache` that cannot be used, with its status, or 0 without one, and why.
  void refuse(CacheRoute& route, std::size_t cache, int status, const Error& why, std::int64_t now);

  /// Something came from `cache` at `time`, in whatever answer.
  void heard(std::size_t cache, std::int64_t time);
  /// Does `cache` hang, so that a request that has waited for `silence` is to be sent elsewhere,
  /// too? Not while it answers others: then it waits for the store, where one request more would
  /// only make things worse.
  bool is_late(std::size_t cache, std::int64_t silence, std::int64_t now) const;
  /// Does this request alone seem to hang?
  bool is_stuck(std::int64_t silence) const { return silence >= 3 * patience(); }
  /// Should the request be cancelled, since its cache is known to fail?
  bool is_hopeless(std::size_t cache, std::int64_t silence, std::int64_t now) const;
  /// Another cache or the service answered before this late cache.
  void overtaken(std::size_t cache, std::int64_t now);

  static constexpr std::int64_t kMinPatience = 1'000'000'000, kMaxPatience = 10'000'000'000;

 private:
  /// Three times the time of nearly all answers, within bounds.
  std::int64_t patience() const;

  const std::shared_ptr<SharedCaches> caches_;
  std::uint64_t uncached_ = 0;
  std::vector<std::int64_t> heard_;  // by cache, when
  LatencyQuantile latency_;
};

}  // namespace batchfs

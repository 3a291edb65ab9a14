#include "engine/store/cloud/via/cache_dispatch.h"

#include <algorithm>

namespace batchfs {

namespace {

/// The part of the service's request slots for requests that caches should have answered: a share,
/// and a floor.
constexpr std::uint64_t kUncachedShare = 8, kMinUncached = 4;
constexpr std::size_t kMaxRefused = 2;  // failed caches a read
constexpr std::int64_t kFailingPatience = 100'000'000;
constexpr std::int64_t kUnknownPatience = 2'000'000'000;  // before the first answers
constexpr const char* kSilent = "it does not answer";

}  // namespace

CacheDispatch::Target CacheDispatch::choose(const CacheRoute& route, HttpRequest& request,
                                            std::uint64_t offset, std::uint64_t limit,
                                            std::int64_t now) {
  if (caches_ == nullptr || route.past_caches) return {};
  const bool may_travel =
      (!request.secret || caches_->are_confidential()) && route.refused.size() < kMaxRefused;
  const std::optional<std::size_t> cache =
      may_travel ? caches_->choose(request.url, offset, route.refused, now) : std::nullopt;
  if (cache) {
    request.gateway = caches_->gateway(*cache);
    return {.cache = cache};
  }
  if (room(limit) == 0) return {.must_wait = true};
  ++uncached_;
  caches_->fell_back();
  return {.is_uncached = true};
}

std::uint64_t CacheDispatch::room(std::uint64_t limit) const {
  const std::uint64_t most = std::max(kMinUncached, limit / kUncachedShare);
  return most - std::min(most, uncached_);
}

void CacheDispatch::answered(std::size_t cache, const HttpResponse& response, std::int64_t latency,
                             std::int64_t now) {
  latency_.add(latency);
  heard(cache, now);
  caches_->answered(cache, response);
}

void CacheDispatch::refuse(CacheRoute& route, std::size_t cache, int status, const Error& why,
                           std::int64_t now) {
  route.refused.push_back(cache);
  const bool is_overloaded = status >= 500 || status == 429;
  // The object may be missing: only the service knows.
  if (status != 0 && !is_overloaded) {
    route.past_caches = true;
    caches_->fell_back();
    if (status >= 300 || why.code() == ErrorCode::not_supported) return;
  }
  if (why.code() != ErrorCode::interrupted)
    caches_->failed(cache, now, why.code() == ErrorCode::timed_out, why.why());
}

void CacheDispatch::heard(std::size_t cache, std::int64_t time) {
  heard_[cache] = std::max(heard_[cache], time);
}

std::int64_t CacheDispatch::patience() const {
  const std::optional<std::int64_t> p99 = latency_.p99();
  return p99 ? std::clamp(3 * *p99, kMinPatience, kMaxPatience) : kUnknownPatience;
}

bool CacheDispatch::is_late(std::size_t cache, std::int64_t silence, std::int64_t now) const {
  return std::min(silence, now - heard_[cache]) >= patience();
}

bool CacheDispatch::is_hopeless(std::size_t cache, std::int64_t silence, std::int64_t now) const {
  return silence >= kFailingPatience && caches_->is_left_alone(cache, now);
}

void CacheDispatch::overtaken(std::size_t cache, std::int64_t now) {
  caches_->failed(cache, now, true, kSilent);
}

}  // namespace batchfs

#include "engine/store/cloud/via/shared_caches.h"

#include <algorithm>

#include <sys/un.h>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/store/cloud/via/object_checksum.h"
#include "engine/store/store_environment.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr std::uint64_t kPart = 64 << 20;  // bytes of a large object that one cache keeps
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kFirstRest = 10 * kSecond, kLongestRest = 300 * kSecond;
/// Others try a cache that was left alone only when the first one has had this time for its answer.
constexpr std::int64_t kTrial = 5 * kSecond;
constexpr int kFailuresInRow = 3;
constexpr std::string_view kUnix = "unix:";  // a Unix socket

Error unusable(const std::string& typed, const std::string& why) {
  return Error(
      ErrorCode::invalid_argument,
      fmt::format("{}; a shared cache is http://HOST:PORT, https://HOST or unix:/PATH", why),
      "--via " + typed);
}

std::string parse_cache_url(const std::string& typed) {
  if (typed.starts_with(kUnix)) {
    const std::string path = typed.substr(kUnix.size());
    if (!path.starts_with('/') || path.starts_with("//") || path.ends_with('/'))
      throw unusable(typed, "it names no socket by its absolute path");
    if (path.size() >= sizeof(sockaddr_un::sun_path))
      throw unusable(typed, fmt::format("Linux limits the path of a socket to {} bytes",
                                        sizeof(sockaddr_un::sun_path) - 1));
    return typed;
  }
  Uri uri;
  try {
    uri = parse_uri(typed);
  } catch (const Error&) {
    throw unusable("URL", fmt::format("'{}' is not a URL", typed.substr(0, typed.find('@'))));
  }
  // Only now: a URL that cannot be parsed may hold a password anywhere.
  const std::string shown = uri.text();
  if (uri.scheme != "http" && uri.scheme != "https")
    throw unusable(shown, fmt::format("{}:// is not spoken by caches", uri.scheme));
  if (!uri.userinfo.empty()) throw unusable(shown, "it holds a user or a password");
  if (!uri.query.empty() || uri.path.find_first_not_of('/') != std::string::npos)
    throw unusable(shown, "it has a path or a query");
  return uri.scheme + "://" + uri.authority();
}

HttpGateway gateway_of(const std::string& url) {
  if (!url.starts_with(kUnix)) return {.url = url};
  return {.url = "http://localhost", .socket = url.substr(kUnix.size())};
}

std::uint64_t score(const std::string& cache, std::string_view object, std::uint64_t part) {
  return XXH3_64bits_withSeed(object.data(), object.size(),
                              XXH3_64bits_withSeed(cache.data(), cache.size(), part));
}

}  // namespace

std::vector<std::string> parse_cache_urls(const std::vector<std::string>& typed) {
  std::vector<std::string> urls;
  if (typed == std::vector<std::string>{"none"}) return urls;
  for (const std::string& text : typed) {
    urls.push_back(parse_cache_url(text));
    if (std::count(urls.begin(), urls.end(), urls.back()) > 1)
      throw unusable(urls.back(), "it is given twice");
  }
  return urls;
}

bool is_confidential(const std::string& cache_url) {
  if (cache_url.starts_with(kUnix)) return true;
  const Uri uri = parse_uri(cache_url);
  return uri.scheme == "https" || is_loopback(uri);
}

std::optional<bool> says_hit(const HttpHeaders& headers) {
  for (const char* name : {"x-cache", "x-cache-status"}) {
    const std::string* value = find_header(headers, name);
    if (value == nullptr) continue;
    std::string upper = *value;
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return upper.find("HIT") != std::string::npos;
  }
  return std::nullopt;
}

SharedCaches::SharedCaches(Options options)
    : options_(std::move(options)),
      are_confidential_(std::all_of(options_.urls.begin(), options_.urls.end(), is_confidential)),
      client_(HttpClient::Options{.timeout = options_.timeout}) {
  for (const std::string& url : options_.urls)
    caches_.push_back({.gateway = std::make_shared<HttpGateway>(gateway_of(url))});
}

std::optional<std::size_t> SharedCaches::choose(std::string_view url, std::uint64_t offset,
                                                const std::vector<std::size_t>& refused,
                                                std::int64_t now) {
  const std::string_view object = url.substr(0, url.find('?'));
  const std::lock_guard lock(mutex_);
  std::optional<std::size_t> best;
  std::uint64_t best_score = 0;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    if (caches_[i].left_alone_until > now) continue;
    if (std::find(refused.begin(), refused.end(), i) != refused.end()) continue;
    const std::uint64_t its_score = score(options_.urls[i], object, offset / kPart);
    if (best && its_score <= best_score) continue;
    best = i;
    best_score = its_score;
  }
  if (!best) return std::nullopt;
  Cache& cache = caches_[*best];
  if (cache.left_alone_until != 0) {
    cache.left_alone_until = now + kTrial;
    cache.is_tried = true;
  }
  ++cache.requests;
  return best;
}

void SharedCaches::answered(std::size_t cache, const HttpResponse& response) {
  const std::optional<bool> hit = says_hit(response.headers);
  const std::lock_guard lock(mutex_);
  Cache& its = caches_[cache];
  if (hit) ++(*hit ? its.hits : its.misses);
  its.failures_in_row = its.times_left_alone = 0;
  its.left_alone_until = 0;
  its.is_tried = false;
}

void SharedCaches::failed(std::size_t cache, std::int64_t now, bool silent,
                          const std::string& why) {
  std::int64_t rest = 0;
  {
    const std::lock_guard lock(mutex_);
    Cache& its = caches_[cache];
    ++its.failures;
    ++its.failures_in_row;
    // Requests in flight when it was first left alone fail as well: they count once.
    const bool rests = its.left_alone_until > now && !its.is_tried;
    if (rests || (!silent && its.failures_in_row < kFailuresInRow)) return;
    its.is_tried = false;
    rest = std::min(kFirstRest << std::min(its.times_left_alone, 8), kLongestRest);
    ++its.times_left_alone;
    its.left_alone_until = now + rest;
  }
  if (options_.warn)
    options_.warn(fmt::format("the shared cache {} is left alone for {} s: {}", url(cache),
                              rest / kSecond, why));
}

bool SharedCaches::is_left_alone(std::size_t cache, std::int64_t now) const {
  const std::lock_guard lock(mutex_);
  return caches_[cache].left_alone_until > now && !caches_[cache].is_tried;
}

void SharedCaches::check_sum(const HttpResponse& response) {
  if (!options_.verify) return;
  const std::optional<bool> fits = fits_checksum(response);
  if (!fits) return;
  ++(*fits ? verified_ : damaged_);
  if (!*fits) throw Error(ErrorCode::corrupt, "an object does not fit its checksum");
}

std::vector<Store::Counter> SharedCaches::counters() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t requests = 0, hits = 0, misses = 0, failures = 0;
  std::vector<Store::Counter> each;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const Cache& cache = caches_[i];
    requests += cache.requests;
    hits += cache.hits;
    misses += cache.misses;
    failures += cache.failures;
    const std::string name = fmt::format("via_{}_", i + 1);
    each.insert(each.end(), {{name + "requests", cache.requests},
                             {name + "hits", cache.hits},
                             {name + "misses", cache.misses},
                             {name + "failures", cache.failures}});
  }
  std::vector<Store::Counter> all{
      {"via_requests", requests},    {"via_hits", hits},
      {"via_misses", misses},        {"via_failures", failures},
      {"via_fallbacks", fallbacks_}, {"via_confirmed", confirmed_},
      {"via_outdated", outdated_},   {"via_bytes", client_.counters().bytes_received}};
  if (options_.verify)
    all.insert(all.end(), {{"via_verified", verified_}, {"via_damaged", damaged_}});
  all.insert(all.end(), each.begin(), each.end());
  return all;
}

}  // namespace batchfs

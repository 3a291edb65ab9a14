#pragma once
// Caching proxies (nginx, Apache Traffic Server) between the machines of a cluster and a store:
// chooses one for each object, and avoids those that fail.
//
// Rendezvous hashing chooses: of all caches, that with the highest hash of its URL, the object's
// address and the part of 64 MiB. Every machine chooses alike, and adding or removing a cache moves
// only the objects that it has or had.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/http/http_client.h"
#include "engine/store/store.h"

namespace batchfs {

/// "http://host:port", "https://host[:port]" or "unix:/path" of each, as typed, without slashes at
/// the end. "none" alone stands for no cache. Throws invalid_argument for anything else: other
/// schemes, a path of a server, a query, a user, the same twice.
std::vector<std::string> parse_cache_urls(const std::vector<std::string>& typed);

/// Can only the cache itself read the requests: is it reached by TLS, or on this
/// machine?
bool is_confidential(const std::string& cache_url);

/// Thread-safe. Times are nanoseconds of the steady clock.
class SharedCaches {
 public:
  struct Options {
    std::vector<std::string> urls;  // of parse_cache_urls()
    double timeout = 30;            // seconds without progress
    bool trust = false;             // objects are used without asking the store for their version
    bool verify = false;            // answers are compared with the checksums that they name
    /// Called with a line for the log, on any thread, when a cache is left alone. May be empty.
    std::function<void(const std::string&)> warn;
  };
  explicit SharedCaches(Options options);

  /// Sends to caches only: a cache that hangs holds up no request to the store.
  HttpClient& client() { return client_; }
  /// Is every one is_confidential()?
  bool are_confidential() const { return are_confidential_; }
  bool trust() const { return options_.trust; }
  std::size_t size() const { return caches_.size(); }
  const std::string& url(std::size_t cache) const { return options_.urls[cache]; }
  const std::shared_ptr<const HttpGateway>& gateway(std::size_t cache) const {
    return caches_[cache].gateway;
  }

  /// Returns the cache for the bytes from `offset` of the object at `url`, whose query does not
  /// count. Skips caches in `refused` and those left alone; nullopt when none remains.
  std::optional<std::size_t> choose(std::string_view url, std::uint64_t offset,
                                    const std::vector<std::size_t>& refused, std::int64_t now);

  /// A usable answer.
  void answered(std::size_t cache, const HttpResponse& response);
  /// `silent`: it did not answer in time. Then it is left alone at once, else
  /// after three failures in succession: for 10 s, and twice as long each further time, up to 5
  /// minutes. After that time one request tries it.
  void failed(std::size_t cache, std::int64_t now, bool silent, const std::string& why);
  /// Is it left alone, and not being tried?
  bool is_left_alone(std::size_t cache, std::int64_t now) const;

  /// The store was asked, because no cache could be, or because of a cache's answer.
  void fell_back() { ++fallbacks_; }
  /// With `verify`, throws corrupt when an answer does not fit the checksum that it names.
  void check_sum(const HttpResponse& response);
  /// The store confirmed the version of an object that came from a cache; or has another.
  void confirmed() { ++confirmed_; }
  void outdated() { ++outdated_; }

  /// The counters in status.json.
  std::vector<Store::Counter> counters() const;

 private:
  struct Cache {
    std::shared_ptr<const HttpGateway> gateway;
    std::uint64_t requests = 0, hits = 0, misses = 0, failures = 0;
    int failures_in_row = 0, times_left_alone = 0;
    std::int64_t left_alone_until = 0;  // 0: it is not
    bool is_tried = false;              // one request has been let through
  };

  const Options options_;
  const bool are_confidential_;
  std::atomic<std::uint64_t> fallbacks_{0}, confirmed_{0}, outdated_{0}, verified_{0}, damaged_{0};
  mutable std::mutex mutex_;  // guards all of caches_ but the gateways
  std::vector<Cache> caches_;
  HttpClient client_;
};

/// Does a cache's answer report a hit? nullopt: it reports neither hit nor miss (X-Cache,
/// X-Cache-Status).
std::optional<bool> says_hit(const HttpHeaders& headers);

}  // namespace batchfs

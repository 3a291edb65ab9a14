#pragma once
// Requests to an object service that end with its answer, whatever happens on the way: retries
// (exponential, full jitter, Retry-After), deadlines, and a second request where the first one
// stalls (a hedge).
//
// Where there are shared caches, jobs that may be answered by one go to it first. Only a
// usable answer of a cache counts: after anything else the next cache or the service is asked, and
// only time is lost. A cache that sends nothing for a second is not waited for. When no
// cache is left, few of these jobs go to the service at a time, so that caches that fail do not
// become a stampede on it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/store/cloud/object_service.h"
#include "engine/store/cloud/via/shared_caches.h"

namespace batchfs {

struct RequestOptions {
  double timeout = 30;  // seconds without progress
  int retries = 3;      // of one request
  /// Seconds after which a request that has met trouble gets no further attempt.
  double budget = 50;
  double first_delay = 0.2, longest_delay = 10;  // seconds between attempts, before jitter
  bool hedge = true;
  std::shared_ptr<SharedCaches> caches;  // may be null
};

/// With the defaults a read that fails for good has failed within 60 s.
RequestOptions request_options(const StoreConfig& config);

/// Thread-safe.
class ObjectRequests {
 public:
  ObjectRequests(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client,
                 RequestOptions options);
  /// Stops as stop() does. Returns after the last callback has.
  ~ObjectRequests();

  /// Ends pending requests with Error{interrupted}, whether they are being sent or wait for their
  /// next attempt or for a token; later requests end so at once. Stops the client, too. Not for
  /// callbacks.
  void stop();

  struct Job {
    /// Builds the request, for each attempt anew; authorize() is called on the result.
    std::function<HttpRequest()> build;
    /// Checks a good answer, on the client's thread; throws io to request it again, else the fault.
    std::function<void(const HttpResponse&)> verify;
    std::string where;   // for errors: the object
    bool hedge = false;  // asking twice does no harm and may help
    /// A shared cache may answer, for the bytes from this offset. Needs `verify`, which recognises
    /// a cache's answers by `from_gateway`.
    std::optional<std::uint64_t> shared = {};
  };
  /// nullopt: missing.
  using Outcome = std::variant<std::optional<HttpResponse>, std::exception_ptr>;
  using Done = std::function<void(Outcome)>;

  /// `done` is called once, on the client's thread or the timer's, under no lock; it must not
  /// block. Sends in the calling thread, which may block for authorization, unless that is the
  /// client's own.
  void send(Job job, Done done);
  std::optional<HttpResponse> send_and_wait(Job job);

  /// Is the caller a callback, which must not wait for an answer?
  bool is_own_thread() const;

  /// Runs work at a time (steady nanoseconds; 0: now) on a thread that may block.
  void post(std::int64_t time, std::function<void()> work);

  std::vector<Store::Counter> counters() const;
  Store::Speed speed() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace batchfs

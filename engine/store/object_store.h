#pragma once
// A store over HTTP requests: what S3, GCS, Azure and plain web servers have in common.
//
// An ObjectService says how one service's requests look and what its answers mean; ObjectStore sends
// them: retries (exponential, full jitter, Retry-After), deadlines, hedged second requests for stalls, one
// request for what several callers want and for near ranges of an object, and the checks that make sure
// that what arrives is what was asked for. A read that fails for good is an Error, never missing.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/http_client.h"
#include "engine/store/store.h"

namespace batchfs {

/// What an answer means.
struct Verdict {
  enum Kind {
    ok,       // the body is what was asked for
    missing,  // there is no such object
    retry,    // passing trouble: the same request later
    moved,    // the service has learnt (a region, an endpoint, a fresh token): a new request at once
    failed,   // for good: `error`
  };
  Kind kind = ok;
  std::optional<Error> error;  // set for failed; for retry, what to say when it does not pass
};

/// Thread-safe. Requests are built anew for each attempt.
class ObjectService {
 public:
  virtual ~ObjectService() = default;

  /// The store's URL without secrets.
  virtual std::string url() const = 0;

  /// The request for an object; the range and conditions are added by the caller. `key` is checked.
  virtual HttpRequest get(const std::string& key) = 0;
  virtual HttpRequest head(const std::string& key) = 0;

  virtual bool can_list() const { return true; }
  /// One page of the children directly below `prefix` ("" or "a/b"). `continuation` is empty for the first
  /// page, then what parse_list() gave.
  virtual HttpRequest list(const std::string& prefix, const std::string& continuation) = 0;
  struct Page {
    std::vector<Store::Entry> entries;
    std::string continuation;  // empty: the last page
  };
  /// Throws corrupt when the body is not a listing.
  virtual Page parse_list(const std::string& prefix, const HttpResponse& response) = 0;

  /// Adds what the service needs to see before it answers (a signature, a token): the last step before
  /// sending. May block while a token is fetched, may throw. Never called on the HTTP client's thread, nor
  /// under a lock.
  virtual void authorize(HttpRequest& request) = 0;

  /// The default is classify_status(): services override it to read their own error bodies first.
  virtual Verdict classify(const HttpResponse& response);
};

/// By status alone: 2xx ok; 404 and 410 missing; 401 and 403 failed (access_denied); 408, 425, 429, 500, 502,
/// 503, 504 retry; 412 failed (stale); the rest failed (io).
Verdict classify_status(const HttpResponse& response);

class ObjectStore : public Store {
 public:
  struct Options {
    double timeout = 30;   // seconds without progress
    int retries = 3;       // of one request
    double budget = 50;    // seconds after which no further attempt is made
    double first_delay = 0.2, longest_delay = 10;  // seconds between attempts, before jitter
    bool hedge = true;
  };
  static Options options_of(const StoreConfig& config);

  /// The client is shared, so that a service can fetch its tokens with it.
  ObjectStore(std::shared_ptr<ObjectService> service, std::shared_ptr<HttpClient> client, Options options);
  /// Reads that are not done end with Error{interrupted}.
  ~ObjectStore() override;

  std::string url() const override;
  std::optional<Buffer> read(const std::string& key, ByteRange range = {}) override;
  std::optional<PartRead> read_into(const std::string& key, std::uint64_t offset,
                                    std::span<std::byte> out) override;
  void read_async(const std::string& key, ByteRange range, ReadDone done) override;
  std::optional<std::uint64_t> size(const std::string& key) override;
  std::vector<Entry> list(const std::string& prefix) override;
  bool can_list() const override;

 private:
  class Transfers;
  std::shared_ptr<Transfers> transfers_;
};

}  // namespace batchfs

#pragma once
// The requests of one service and the meaning of its answers: S3, GCS, Azure, plain web servers.
// ObjectStore sends the requests.

#include <optional>
#include <string>
#include <vector>

#include "engine/store/http/http_client.h"
#include "engine/store/store.h"

namespace batchfs {

/// The meaning of an answer.
struct Verdict {
  enum Kind {
    ok,       // the body is the requested object
    missing,  // the object does not exist
    retry,    // passing trouble: the same request later
    moved,   // the service has learnt (a region, an endpoint, a fresh token): a new request at once
    failed,  // for good: `error`
  };
  Kind kind = ok;
  std::optional<Error> error;  // set for failed; for retry, the error if it does not pass
};

/// Thread-safe. Requests are built anew for each attempt.
class ObjectService {
 public:
  virtual ~ObjectService() = default;

  /// The store's URL without secrets.
  virtual std::string url() const = 0;
  /// Distinguishes, beside the URL, its objects from others: a server, an account. No secrets.
  virtual std::string realm() const { return {}; }

  /// A cache's view of a request's authorization.
  enum class Credentials {
    harmless,     // none, or a signature that is valid for this request alone
    secret,       // a token or a password
    sign_ranges,  // a signature that fits no other range
  };
  virtual Credentials credentials_kind() const { return Credentials::harmless; }

  /// Do all answers name one version of an object by the same text? Replicas of a web server may
  /// not.
  virtual bool names_versions_once() const { return true; }

  /// The request for an object; the range and conditions are added by the caller. `key` is checked.
  virtual HttpRequest get(const std::string& key) = 0;
  virtual HttpRequest head(const std::string& key) = 0;

  virtual bool can_list() const { return true; }
  /// One page of the children directly below `prefix` ("" or "a/b"). `continuation` is empty for
  /// the first page, then the result of parse_list().
  virtual HttpRequest list(const std::string& prefix, const std::string& continuation) = 0;
  struct Page {
    std::vector<Store::Entry> entries;
    std::string continuation;  // empty: the last page
  };
  /// Throws corrupt when the body is not a listing.
  virtual Page parse_list(const std::string& prefix, const HttpResponse& response) = 0;

  /// One page of all objects below `prefix`, at any depth; `continuation` as for list(). nullopt
  /// where a listing does not contain the versions of answers to get().
  virtual std::optional<HttpRequest> list_versions(const std::string& prefix,
                                                   const std::string& continuation);
  struct VersionPage {
    struct Object {
      std::string key;      // below the store's URL
      std::string version;  // as version_of() an answer to get()
      std::uint64_t size;   // bytes
    };
    std::vector<Object> objects;
    std::string continuation;  // empty: the last page
  };
  /// A page of a listing as the service sends it; the names are those below the listed prefix.
  struct Listing {
    std::vector<std::string> prefixes;
    std::vector<VersionPage::Object> objects;
    std::string continuation;  // empty: the last page
  };
  /// Throws corrupt when the body is not a listing.
  virtual VersionPage parse_versions(const std::string& prefix, const HttpResponse& response);

  /// Adds what the service needs to see before it answers (a signature, a token): the last step
  /// before sending. May block while a token is fetched, may throw. Never called on the HTTP
  /// client's thread, nor under a lock.
  virtual void authorize(HttpRequest& request) = 0;

  /// Must not block. The default is classify_status(): services override it to read their own error
  /// bodies first. Answers 416 to a range and 304 to a condition do not come here: they are good.
  virtual Verdict classify(const HttpResponse& response);
};

/// Has an XML text more markup than any page of a listing has? The parser takes far more memory for
/// it than for text.
bool has_much_markup(std::string_view xml);

/// By status alone: 2xx ok; 404 and 410 missing; 401 and 403 failed (access_denied); 408, 425, 429,
/// 500, 502, 503, 504 retry; 412 failed (stale); the rest failed (io).
Verdict classify_status(const HttpResponse& response);

}  // namespace batchfs

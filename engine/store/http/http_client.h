#pragma once
// HTTP requests, many at a time: one libcurl multi loop on one thread.
//
//   HttpClient client;
//   client.send({.url = "https://host/object"}, [](HttpOutcome outcome) { ... });
//
// Connections are kept alive and shared (HTTP/1.1, and /2 over TLS). The number of requests in
// flight adapts: more while that increases throughput, fewer when the server reports too many. TLS
// is verified, against the system's certificates or those that SSL_CERT_FILE or CURL_CA_BUNDLE
// names; proxies are taken from the environment, as libcurl does. Retries are not made here:
// ObjectStore knows about them.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/error.h"
#include "engine/store/store.h"

namespace batchfs {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The value of a header by its lower-case name; nullptr when absent.
const std::string* find_header(const HttpHeaders& headers, std::string_view name);

/// A caching proxy that a request is sent to in place of its URL's own server: it gets the same
/// path, query and headers, and the server's name as Host.
struct HttpGateway {
  std::string url;             // "http://host:port" or "https://host", no path
  double connect_timeout = 1;  // seconds
  std::string socket = {};     // the path of the Unix socket that it listens on; empty: TCP
};

/// Progress of a request, for the stall detector. Nanoseconds of the steady clock.
struct HttpProgress {
  std::atomic<std::int64_t> started{0};         // 0: waits for its turn
  std::atomic<std::int64_t> first_received{0};  // headers or bytes; 0: nothing yet
  std::atomic<std::int64_t> last_received{0};
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  HttpHeaders headers;
  std::string body;
  /// Sent as the Range header. If the answer has the whole object (200), only the range is kept.
  std::optional<ByteRange> range;
  bool asks_for_range = true;               // false: without the header
  double timeout = 0;                       // seconds without progress; 0: the client's
  std::uint64_t largest_body = 4ull << 30;  // a longer answer is an error
  bool follow_redirects = true;
  bool new_connection = false;  // not one that other requests were sent over
  std::shared_ptr<HttpProgress> progress;
  std::shared_ptr<const HttpGateway> gateway;  // may be null; its redirects are not followed
  /// URL or headers hold a secret that opens more than this object (a token, a password).
  bool secret = false;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;  // of the last answer; names in lower case
  Buffer body;
  std::string effective_url;  // after redirects
  /// Bytes of the body as it came: more than body.size() when a range was cut out of a whole
  /// object, and the transfer ends there.
  std::uint64_t body_received = 0;
  bool from_gateway = false;  // the request had one
};

/// The answer, whatever its status, or an Error instead of one, with
///   io             connecting or the transfer failed (retrying may help)
///   timed_out      no progress for `timeout` seconds (retrying may help)
///   access_denied  the server's certificate is not trusted
///   not_supported  a redirect that is not followed: too many, or from https to http
///   corrupt        the answer is longer than `largest_body`, or is not HTTP
///   invalid_argument  the URL cannot be used
///   interrupted    cancelled, or the client was destroyed
using HttpOutcome = std::variant<HttpResponse, std::exception_ptr>;
using HttpDone = std::function<void(HttpOutcome)>;

/// Thread-safe.
class HttpClient {
 public:
  struct Options {
    double timeout = 30;          // seconds without progress: less than a kilobyte a second
    double connect_timeout = 10;  // seconds
    int first_in_flight = 64;
    int most_in_flight = 256;
  };
  HttpClient();
  explicit HttpClient(Options options);
  /// Requests that are not done end with Error{interrupted}. Returns after the last callback has.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  using RequestId = std::uint64_t;

  /// Starts a request. `done` is called once, on the client's thread and under no lock; it must not
  /// block and must not destroy the client.
  RequestId send(HttpRequest request, HttpDone done);

  /// Ends a request with Error{interrupted} unless it is done.
  void cancel(RequestId id);

  /// Ends all of them, and every later one at once. Does not wait for their callbacks.
  void stop();

  /// Sends and waits. Throws the error. Not for the client's own thread (a callback).
  HttpResponse send_and_wait(HttpRequest request);

  /// Is the caller a callback of this client?
  bool is_own_thread() const;

  struct Counters {
    std::atomic<std::uint64_t> requests{0};        // sent, redirects not counted
    std::atomic<std::uint64_t> failures{0};        // without an answer
    std::atomic<std::uint64_t> throttled{0};       // answers 429 and 503
    std::atomic<std::uint64_t> connections{0};     // opened
    std::atomic<std::uint64_t> bytes_received{0};  // bodies, also those that were thrown away
    std::atomic<std::uint64_t> in_flight{0};       // now
    std::atomic<std::uint64_t> waiting{0};         // now, for their turn
    std::atomic<std::uint64_t> limit{0};           // now, of in_flight
  };
  const Counters& counters() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

/// The `Range` header's value (RFC 9110, 14.2).
std::string range_header(const ByteRange& range);

}  // namespace batchfs

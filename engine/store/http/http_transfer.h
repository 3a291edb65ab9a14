#pragma once
// One request on its way through libcurl: its easy handle, the answer so far, redirects, and the
// meaning of failures. Used by HttpClient's loop only, on its thread.

#include <cerrno>
#include <memory>

#include <curl/curl.h>

#include "engine/store/http/http_client.h"

namespace batchfs {

struct CurlSlistFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class HttpTransfer {
 public:
  struct Settings {
    double timeout, connect_timeout;
    /// Duration of a typical successful connect, in seconds; 0: not known yet. A connect that takes
    /// far longer has lost its first packet in a full queue of the server, and TCP would try again
    /// only after a second.
    double usual_connect = 0;
    std::string ca_file, ca_path;  // empty: libcurl's own
  };

  HttpTransfer(HttpClient::RequestId id, HttpRequest request, HttpDone done)
      : id_(id), request_(std::move(request)), done_(std::move(done)) {}
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  HttpClient::RequestId id() const { return id_; }

  /// Prepares `easy`, which this object then uses until the next prepare(). Throws
  /// invalid_argument.
  void prepare(CURL* easy, const Settings& settings);
  CURL* easy() const { return easy_; }

  /// Was it abandoned because connecting took longer than usual? Then prepare it again; it will be
  /// more patient.
  bool lost_patience(CURLcode code);

  /// Has it failed since this process has no descriptor for a connection? It may be sent again when
  /// others have ended.
  bool lacks_descriptor() const { return socket_error_ == EMFILE || socket_error_ == ENFILE; }

  /// Has libcurl's result been a redirect that must be followed? Then the request now names the
  /// new place and must be prepared again. Throws not_supported for one that is refused.
  bool redirect(CURLcode code);

  /// The outcome after libcurl has finished with `code`.
  HttpOutcome outcome(CURLcode code);
  int status() const { return response_.status; }
  std::uint64_t received() const { return response_.body_received; }

  /// Called now and then: has it been slower than a kilobyte a second for the whole timeout?
  bool stalls(std::int64_t now, const Settings& settings);
  Error stall_error() const;

  void finish(HttpOutcome outcome) {
    const HttpDone done = std::move(done_);
    done(std::move(outcome));
  }

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static curl_socket_t on_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  bool take_header(std::string_view line);
  bool take_body(const char* data, std::size_t size);
  void begin_body();
  void append(const char* data, std::size_t size);
  void keep_end();
  void note_progress(std::size_t bytes);
  Error failure(CURLcode code) const;
  std::string place() const;
  /// The server that gets the request: the gateway, where there is one.
  std::string peer() const;

  const HttpClient::RequestId id_;
  HttpRequest request_;
  HttpDone done_;
  CURL* easy_ = nullptr;
  std::unique_ptr<curl_slist, CurlSlistFree> headers_;
  char message_[CURL_ERROR_SIZE] = {};
  int socket_error_ = 0;  // why a connection has no socket
  int redirects_ = 0;
  double patience_ = 1;  // factor on the connection timeout
  bool hurried_ = false;

  HttpResponse response_;
  std::size_t header_bytes_ = 0;
  bool body_begun_ = false;
  std::uint64_t skip_ = 0;  // bytes of the body to skip
  std::uint64_t keep_ = 0;  // at most
  bool cut_ = false;        // bytes beyond `keep_` are not wanted; else they are an error
  bool slides_ = false;     // of an object of unknown length, the end is kept
  bool enough_ = false;     // ended by us, with all that was wanted
  std::optional<Error> refused_;
  Buffer body_;
  std::size_t filled_ = 0;

  std::int64_t fast_at_ = 0, checked_at_ = 0;  // when it was last fast enough, last looked at
  std::uint64_t arrived_ = 0, arrived_before_ = 0;
};

/// Nanoseconds of the steady clock.
std::int64_t steady_now();

}  // namespace batchfs

#include "engine/store/http/http_transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <sys/socket.h>

#include "engine/base/strings.h"
#include "engine/base/system_error.h"
#include "engine/store/http/response_checks.h"
#include "engine/store/uri.h"

namespace batchfs {

namespace {

constexpr int kMaxRedirects = 5;
constexpr std::size_t kMaxHeaders = 256 << 10;
/// Limit for the body of an answer that is not the object: enough for the service's error document.
constexpr std::uint64_t kMaxErrorBody = 256 << 10;
/// Memory is taken in steps, so that a length that a server only claims costs nothing.
constexpr std::uint64_t kFirstAllocation = 64 << 20;
/// Bytes of an object's end that are kept beyond those wanted, so that moving them stays rare.
constexpr std::size_t kSlidingSlack = 1 << 20;
/// libcurl's buffer, which each transfer has: every fill is a wait for the socket and a call of
/// ours.
constexpr std::uint64_t kSmallBuffer = 16 << 10, kLargeBuffer = 512 << 10;
constexpr double kSlowest = 1024;  // bytes per second
constexpr double kHurry = 0.2;     // seconds

/// The requested length, within bounds; a whole object may be large.
long buffer_size(const HttpRequest& request) {
  const std::uint64_t wanted = request.range ? request.range->length : kLargeBuffer;
  return static_cast<long>(std::clamp(wanted, kSmallBuffer, kLargeBuffer));
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Headers that may be sent to another host: they do not identify the client.
bool is_harmless(const std::string& name) {
  constexpr std::string_view kHarmless[] = {"accept", "accept-encoding", "if-match",
                                            "if-none-match", "range"};
  std::string lower = name;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(std::begin(kHarmless), std::end(kHarmless), lower) != std::end(kHarmless);
}

/// The server of a URL in the form of the Host header (RFC 9110, 7.2).
std::string host_of(const Uri& uri) {
  const bool usual = uri.port == (uri.scheme == "https" ? "443" : "80");
  return usual ? uri.host : uri.authority();
}

/// The URL with another server in place of its own.
std::string at_gateway(const std::string& gateway, const std::string& url) {
  const std::size_t host = url.find("://") + 3;
  const std::string rest = url.substr(std::min(url.find_first_of("/?#", host), url.size()));
  return gateway + (rest.starts_with('/') ? "" : "/") + rest;
}

/// The same server, or the same over TLS.
bool same_server(const Uri& a, const Uri& b) {
  if (a.host != b.host) return false;
  const auto port = [](const Uri& u) {
    return !u.port.empty() ? u.port : u.scheme == "https" ? "443" : "80";
  };
  if (a.scheme == b.scheme) return port(a) == port(b);
  return a.scheme == "http" && port(a) == "80" && port(b) == "443";
}

}  // namespace

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void HttpTransfer::prepare(CURL* easy, const Settings& settings) {
  easy_ = easy;
  response_ = {};
  header_bytes_ = 0;
  body_begun_ = false;
  body_ = {};
  filled_ = 0;
  message_[0] = '\0';
  socket_error_ = 0;

  std::unique_ptr<curl_slist, CurlSlistFree> list;
  const auto add = [&list](const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    [[maybe_unused]] auto* same = list.release();
    list.reset(longer);
  };
  for (const auto& [name, value] : request_.headers) {
    const std::string line = value.empty() ? name + ";" : name + ": " + value;
    if (line.find_first_of("\r\n") != std::string::npos || line.find('\0') != std::string::npos)
      throw Error(ErrorCode::invalid_argument, "a header holds a line break", place());
    add(line);
  }
  if (request_.range && request_.asks_for_range) add("Range: " + range_header(*request_.range));
  const HttpGateway* gateway = request_.gateway.get();
  if (gateway != nullptr) add("Host: " + host_of(parse_uri(request_.url)));
  const std::string url =
      gateway != nullptr ? at_gateway(gateway->url, request_.url) : request_.url;
  headers_ = std::move(list);

  curl_easy_reset(easy);
  const auto set = [easy](CURLoption option, auto value) {
    if (curl_easy_setopt(easy, option, value) == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  };
  set(CURLOPT_URL, url.c_str());
  if (gateway != nullptr) set(CURLOPT_PROXY, "");  // it is near
  if (gateway != nullptr && !gateway->socket.empty())
    set(CURLOPT_UNIX_SOCKET_PATH, gateway->socket.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_USERAGENT, "batchfs");
  set(CURLOPT_ERRORBUFFER, message_);
  set(CURLOPT_WRITEFUNCTION, &HttpTransfer::on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_OPENSOCKETFUNCTION, &HttpTransfer::on_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_HEADERFUNCTION, &HttpTransfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // a name that is being resolved does not hold up the end
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, buffer_size(request_));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // Rather wait for a TLS connection that is being made, to share it, than make one for each
  // request.
  if (url.starts_with("https")) set(CURLOPT_PIPEWAIT, 1L);
  if (request_.new_connection) set(CURLOPT_FRESH_CONNECT, 1L);
  const double timeout = request_.timeout > 0 ? request_.timeout : settings.timeout;
  double connect_timeout = std::min(timeout, settings.connect_timeout);
  const double usual = patience_ * (kHurry + 10 * settings.usual_connect);
  hurried_ = gateway == nullptr && settings.usual_connect > 0 && usual < connect_timeout;
  if (hurried_) connect_timeout = usual;
  if (gateway != nullptr) connect_timeout = std::min(timeout, gateway->connect_timeout);
  set(CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, static_cast<long>(connect_timeout * 1000)));
  if (!settings.ca_file.empty()) set(CURLOPT_CAINFO, settings.ca_file.c_str());
  if (!settings.ca_path.empty()) set(CURLOPT_CAPATH, settings.ca_path.c_str());
  if (request_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request_.method != "GET") {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(CURLOPT_POSTFIELDS, request_.body.data());
    set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  fast_at_ = checked_at_ = steady_now();
  arrived_ = arrived_before_ = 0;
  if (request_.progress && redirects_ == 0) request_.progress->started = fast_at_;
}

std::size_t HttpTransfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  const bool good = static_cast<HttpTransfer*>(self)->take_header({data, size * count});
  return good ? size * count : 0;
}

/// Does what libcurl does by default, but reports why a socket could not be made.
curl_socket_t HttpTransfer::on_socket(void* self, curlsocktype, curl_sockaddr* address) {
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (fd < 0) static_cast<HttpTransfer*>(self)->socket_error_ = errno;
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

std::size_t HttpTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  const bool good = static_cast<HttpTransfer*>(self)->take_body(data, size * count);
  return good ? size * count : CURL_WRITEFUNC_ERROR;
}

void HttpTransfer::note_progress(std::size_t bytes) {
  arrived_ += bytes;
  if (!request_.progress) return;
  const std::int64_t now = steady_now();
  if (request_.progress->first_received == 0) request_.progress->first_received = now;
  request_.progress->last_received = now;
}

bool HttpTransfer::take_header(std::string_view line) {
  note_progress(line.size());
  header_bytes_ += line.size();
  if (header_bytes_ > kMaxHeaders) {
    refused_ = Error(ErrorCode::corrupt, "the answer's headers are too long", place());
    return false;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // also after 100 Continue
    response_.headers.clear();
    return true;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  line.remove_prefix(colon + 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  response_.headers.emplace_back(std::move(name), line);
  return true;
}

/// Decides which part of the body is kept, once the headers have arrived.
void HttpTransfer::begin_body() {
  body_begun_ = true;
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl_off_t length = -1;
  curl_easy_getinfo(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  skip_ = 0;
  cut_ = slides_ = false;
  keep_ = request_.largest_body;
  const std::optional<ByteRange>& range = request_.range;
  if (status < 200 || status >= 300) {
    keep_ = kMaxErrorBody;
    cut_ = true;
  } else if (range && status == 206) {
    keep_ = std::min(keep_, range->length);
    cut_ = find_header(response_.headers, "content-range") == nullptr;  // of no use
    if (const auto before = narrow_range(response_, *range)) {
      skip_ = *before;
      cut_ = true;
    }
  } else if (range && range->from_end) {
    // Without a length the whole must be seen; outcome() then takes its end.
    slides_ = length < 0;
    if (length >= 0)
      skip_ = static_cast<std::uint64_t>(length) - std::min<std::uint64_t>(range->length, length);
  } else if (range) {
    skip_ = range->offset;
    keep_ = std::min(keep_, range->length);
    cut_ = true;
  }
  std::uint64_t expected = 0;
  if (length >= 0) {
    expected = static_cast<std::uint64_t>(length) - std::min<std::uint64_t>(skip_, length);
    if (expected > keep_ && !cut_)
      throw Error(ErrorCode::corrupt,
                  fmt::format("the server answers with {}, at most {} were expected",
                              format_size(expected), format_size(keep_)),
                  place());
    expected = std::min(expected, keep_);
  }
  body_ = Buffer(std::min(expected, kFirstAllocation));
}

void HttpTransfer::append(const char* data, std::size_t size) {
  if (size > body_.size() - filled_) {
    const std::uint64_t wanted =
        std::max<std::uint64_t>(filled_ + size, body_.size() * std::uint64_t{2});
    Buffer larger(std::max<std::uint64_t>(std::min(wanted, keep_), filled_ + size));
    if (filled_ > 0) std::memcpy(larger.data(), body_.data(), filled_);
    body_ = std::move(larger);
  }
  std::memcpy(body_.data() + filled_, data, size);
  filled_ += size;
}

/// Only the last bytes of an object of unknown length are wanted: bytes that can no longer be among
/// them are dropped.
void HttpTransfer::keep_end() {
  if (!slides_) return;
  if (response_.body_received > request_.largest_body)
    throw Error(ErrorCode::corrupt,
                fmt::format("the server sends more than the {} that were expected",
                            format_size(request_.largest_body)),
                place());
  const std::uint64_t wanted = request_.range->length;
  if (filled_ <= kSlidingSlack || filled_ / 2 < wanted) return;
  std::memmove(body_.data(), body_.data() + filled_ - wanted, wanted);
  filled_ = wanted;
}

bool HttpTransfer::take_body(const char* data, std::size_t size) {
  note_progress(size);
  try {
    if (!body_begun_) begin_body();
    response_.body_received += size;
    const std::size_t skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, size));
    skip_ -= skipped;
    data += skipped;
    size -= skipped;
    const std::size_t kept =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, keep_ - filled_));
    if (kept < size && !cut_)
      throw Error(
          ErrorCode::corrupt,
          fmt::format("the server sends more than the {} that were expected", format_size(keep_)),
          place());
    if (kept > 0) append(data, kept);
    keep_end();
    // Further bytes would be thrown away: the rest of a large object is not worth the connection.
    if (cut_ && filled_ == keep_) enough_ = true;
    return !enough_;
  } catch (const Error& error) {
    refused_ = error;
  } catch (const std::bad_alloc&) {
    refused_ = Error(ErrorCode::no_memory, "out of memory", place());
  }
  return false;
}

bool HttpTransfer::redirect(CURLcode code) {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  if (!request_.follow_redirects || request_.gateway != nullptr || refused_ ||
      !is_redirect(static_cast<int>(status)) || (code != CURLE_OK && !enough_) ||
      (request_.method != "GET" && request_.method != "HEAD"))
    return false;
  char* location = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &location);
  if (location == nullptr) return false;
  const auto refuse = [this](const std::string& why) {
    return Error(ErrorCode::not_supported, why, place());
  };
  if (++redirects_ > kMaxRedirects)
    throw refuse("the server redirects in a circle, or more than 5 times");
  const Uri from = parse_uri(request_.url);
  Uri to;
  try {
    to = parse_uri(location);
  } catch (const Error& error) {
    throw refuse("the server redirects to something that is not a URL: " + error.why());
  }
  if (to.scheme != "http" && to.scheme != "https")
    throw refuse(
        fmt::format("the server redirects to a {}: URL, which is not followed", to.scheme));
  if (from.scheme == "https" && to.scheme == "http")
    throw refuse(fmt::format("the server redirects from https to http ({}), which is not followed",
                             to.host));
  if (!same_server(from, to))
    std::erase_if(request_.headers, [](const auto& header) { return !is_harmless(header.first); });
  request_.url = location;
  enough_ = false;
  return true;
}

bool HttpTransfer::lost_patience(CURLcode code) {
  curl_off_t connected = 0;
  curl_easy_getinfo(easy_, CURLINFO_PRETRANSFER_TIME_T, &connected);
  if (!hurried_ || code != CURLE_OPERATION_TIMEDOUT || connected != 0) return false;
  if (request_.progress) request_.progress->started = 0;
  patience_ *= 2;
  return true;
}

HttpOutcome HttpTransfer::outcome(CURLcode code) {
  if (refused_) return std::make_exception_ptr(*refused_);
  if (code != CURLE_OK && !enough_) return std::make_exception_ptr(failure(code));
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  response_.from_gateway = request_.gateway != nullptr;
  char* url = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_EFFECTIVE_URL, &url);
  if (url != nullptr) response_.effective_url = url;
  const std::optional<ByteRange>& range = request_.range;
  if (range && range->from_end && status == 200 && filled_ > range->length) {
    std::memmove(body_.data(), body_.data() + filled_ - range->length, range->length);
    filled_ = range->length;
  }
  body_.truncate(filled_);
  response_.body = std::move(body_);
  return std::move(response_);
}

bool HttpTransfer::stalls(std::int64_t now, const Settings& settings) {
  const double timeout = request_.timeout > 0 ? request_.timeout : settings.timeout;
  const double seconds = static_cast<double>(now - checked_at_) * 1e-9;
  if (seconds < std::min(timeout / 8, 1.0)) return false;
  if (static_cast<double>(arrived_ - arrived_before_) >= kSlowest * seconds) fast_at_ = now;
  arrived_before_ = arrived_;
  checked_at_ = now;
  return static_cast<double>(now - fast_at_) * 1e-9 >= timeout;
}

Error HttpTransfer::stall_error() const {
  if (arrived_ == 0) return Error(ErrorCode::timed_out, "the server does not answer", place());
  return Error(ErrorCode::timed_out, "the answer has stalled", place());
}

std::string HttpTransfer::place() const {
  try {
    return parse_uri(request_.url).text();
  } catch (const Error&) {
    return "a malformed URL";
  }
}

std::string HttpTransfer::peer() const {
  if (request_.gateway != nullptr && !request_.gateway->socket.empty())
    return request_.gateway->socket;
  try {
    return parse_uri(request_.gateway != nullptr ? request_.gateway->url : request_.url)
        .authority();
  } catch (const Error&) {
    return "the server";
  }
}

Error HttpTransfer::failure(CURLcode code) const {
  const std::string detail = message_[0] != '\0' ? message_ : curl_easy_strerror(code);
  const std::string host = peer();
  const auto error = [&](ErrorCode kind, const std::string& why) {
    return Error(kind, why, place());
  };
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return error(ErrorCode::io, fmt::format("the host name of {} is not known", host));
    case CURLE_COULDNT_RESOLVE_PROXY:
      return error(ErrorCode::io,
                   "the host name of the proxy is not known; see https_proxy and http_proxy");
    case CURLE_COULDNT_CONNECT:
      if (lacks_descriptor())
        return error(ErrorCode::io, fmt::format("connecting to {}: {}", host,
                                                describe_system_error(socket_error_)));
      if (long number = 0;
          curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &number) == CURLE_OK && number != 0)
        return error(ErrorCode::io, fmt::format("connecting to {} failed: {}", host,
                                                describe_system_error(static_cast<int>(number))));
      return error(ErrorCode::io, fmt::format("connecting to {} failed", host));
    case CURLE_OPERATION_TIMEDOUT:
      return error(ErrorCode::timed_out, fmt::format("connecting to {} takes too long", host));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return error(
          ErrorCode::access_denied,
          fmt::format(
              "the certificate of {} is not trusted ({}); a private authority's certificate "
              "can be named with SSL_CERT_FILE",
              host, detail));
    case CURLE_SSL_CACERT_BADFILE:
      return error(ErrorCode::access_denied,
                   "the file of trusted certificates (SSL_CERT_FILE) cannot be used");
    case CURLE_SSL_CONNECT_ERROR:
      return error(ErrorCode::io,
                   fmt::format("the TLS handshake with {} failed: {}", host, detail));
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return error(ErrorCode::io, "the connection ended before the answer did");
    case CURLE_WEIRD_SERVER_REPLY:
      return error(ErrorCode::corrupt, "the answer is not HTTP");
    case CURLE_UNSUPPORTED_PROTOCOL:
      if (detail.find("HTTP/0.9") != std::string::npos)
        return error(ErrorCode::corrupt, "the answer is not HTTP");
      return error(ErrorCode::invalid_argument, "not an http:// or https:// URL");
    case CURLE_URL_MALFORMAT:
      return error(ErrorCode::invalid_argument, "the URL cannot be used: " + detail);
    case CURLE_OUT_OF_MEMORY:
      // libcurl also reports this for a header with a line of more than 100 KB.
      if (header_bytes_ > 0) return error(ErrorCode::corrupt, "the answer's headers are too long");
      return error(ErrorCode::no_memory, "out of memory");
    default:
      return error(ErrorCode::io, "the request failed: " + detail);
  }
}

}  // namespace batchfs

#include "engine/store/http/http_client.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/system_error.h"
#include "engine/store/crypto.h"
#include "engine/store/http/concurrency_limit.h"
#include "engine/store/http/http_transfer.h"

namespace batchfs {

namespace {

void initialize_curl() {
  initialize_libcrypto();  // libcurl ignores the result
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) throw Error(ErrorCode::internal, "libcurl does not start");
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The certificates of authorities, where they are not where Debian keeps them, as libcurl was
/// built to expect: a program in a Python wheel runs on other systems. Empty: libcurl's place.
std::string ca_file() {
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (::access(path, R_OK) == 0) return path;
  return {};
}

Descriptor opened(int fd) {
  if (fd < 0)
    throw Error(ErrorCode::io, describe_system_error(errno), "the event loop of the HTTP client");
  return Descriptor(fd);
}

Error interrupted() { return Error(ErrorCode::interrupted, "the request was cancelled"); }

}  // namespace

const std::string* find_header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (key == name) return &value;
  return nullptr;
}

std::string range_header(const ByteRange& range) {
  if (range.from_end) return fmt::format("bytes=-{}", range.length);
  if (range.length == 0 || range.length > UINT64_MAX - range.offset)
    return fmt::format("bytes={}-", range.offset);
  return fmt::format("bytes={}-{}", range.offset, range.offset + range.length - 1);
}

/// libcurl's multi_socket interface on epoll: the cost of an event does not grow with the number of
/// requests in flight, as it does with curl_multi_poll.
class HttpClient::Loop {
 public:
  explicit Loop(Options options)
      : settings_{.timeout = options.timeout,
                  .connect_timeout = options.connect_timeout,
                  .ca_file = {},
                  .ca_path = {}},
        limit_(options.first_in_flight, options.most_in_flight),
        poll_(opened(::epoll_create1(EPOLL_CLOEXEC))),
        wake_(opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
    initialize_curl();
    settings_.ca_file = environment("SSL_CERT_FILE");
    if (settings_.ca_file.empty()) settings_.ca_file = environment("CURL_CA_BUNDLE");
    settings_.ca_path = environment("SSL_CERT_DIR");
    if (settings_.ca_file.empty() && settings_.ca_path.empty()) settings_.ca_file = ca_file();
    multi_ = curl_multi_init();
    if (multi_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Loop::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Loop::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options.most_in_flight));
    // One TCP connection is slower than several: spread HTTP/2 streams.
    curl_multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, 8L);
    epoll_event event{.events = EPOLLIN, .data = {.fd = wake_.get()}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
      curl_multi_cleanup(multi_);
      throw Error(ErrorCode::io, describe_system_error(errno), "the event loop of the HTTP client");
    }
    counters_.limit = static_cast<std::uint64_t>(limit_.limit());
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    stop();
    thread_.join();
    for (CURL* easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
  }

  // noexcept: send_and_wait() waits for `done`, which must not be called when it has been unwound.
  RequestId send(HttpRequest request, HttpDone done) noexcept {
    auto transfer = std::unique_ptr<HttpTransfer>();
    RequestId id = 0;
    {
      const std::lock_guard lock(mutex_);
      id = ++last_id_;
      transfer = std::make_unique<HttpTransfer>(id, std::move(request), std::move(done));
      if (!stopping_) {
        inbox_.push_back(std::move(transfer));
        ++counters_.waiting;
      }
    }
    if (transfer != nullptr)
      transfer->finish(std::make_exception_ptr(interrupted()));
    else
      wake();
    return id;
  }

  void cancel(RequestId id) noexcept {
    {
      const std::lock_guard lock(mutex_);
      cancelled_.push_back(id);
    }
    wake();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
  }

  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  const Counters& counters() const { return counters_; }

 private:
  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
    auto* loop = static_cast<Loop*>(self);
    if (what == CURL_POLL_REMOVE) {
      ::epoll_ctl(loop->poll_.get(), EPOLL_CTL_DEL, socket, nullptr);
      return 0;
    }
    epoll_event event{};
    event.data.fd = socket;
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    const int operation = known != nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (::epoll_ctl(loop->poll_.get(), operation, socket, &event) != 0 && errno == EEXIST)
      ::epoll_ctl(loop->poll_.get(), EPOLL_CTL_MOD, socket, &event);
    if (known == nullptr) curl_multi_assign(loop->multi_, socket, loop);
    return 0;
  }

  static int on_timer(CURLM*, long milliseconds, void* self) {
    auto* loop = static_cast<Loop*>(self);
    loop->timer_at_ =
        milliseconds < 0 ? kNever : steady_now() + std::int64_t{milliseconds} * 1'000'000;
    return 0;
  }

  void wake() {
    const std::uint64_t one = 1;
    // It can only fail when the counter is full, and then the thread wakes anyway.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  void run() {
    while (take_orders()) {
      start_waiting();
      wait_for_events();
      finish_done();
      end_stalled();
    }
    end_all();
  }

  /// Takes the orders of other threads; false when the loop is to end.
  bool take_orders() {
    std::vector<RequestId> cancelled;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      std::move(inbox_.begin(), inbox_.end(), std::back_inserter(waiting_));
      inbox_.clear();
      cancelled.swap(cancelled_);
    }
    for (const RequestId id : cancelled) {
      if (const auto it = active_.find(id); it != active_.end()) {
        end(it->second.get(), std::make_exception_ptr(interrupted()));
        continue;
      }
      const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                                   [id](const auto& t) { return t->id() == id; });
      if (it == waiting_.end()) continue;
      const std::unique_ptr<HttpTransfer> transfer = std::move(*it);
      waiting_.erase(it);
      --counters_.waiting;
      transfer->finish(std::make_exception_ptr(interrupted()));
    }
    return true;
  }

  void start_waiting() {
    while (!waiting_.empty() && static_cast<int>(active_.size()) < limit_.limit()) {
      std::unique_ptr<HttpTransfer> transfer = std::move(waiting_.front());
      waiting_.pop_front();
      --counters_.waiting;
      ++counters_.requests;
      ++counters_.in_flight;
      HttpTransfer* started = transfer.get();
      active_.emplace(started->id(), std::move(transfer));
      start(started, take_handle());
    }
  }

  CURL* take_handle() {
    if (idle_.empty()) return curl_easy_init();
    CURL* easy = idle_.back();
    idle_.pop_back();
    return easy;
  }

  void start(HttpTransfer* transfer, CURL* easy) {
    try {
      if (easy == nullptr) throw std::bad_alloc();
      transfer->prepare(easy, settings_);
    } catch (...) {
      if (easy != nullptr) idle_.push_back(easy);
      finish(transfer, std::current_exception());
      return;
    }
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK)
      end(transfer,
          std::make_exception_ptr(Error(ErrorCode::internal, "libcurl refuses the request")));
  }

  void wait_for_events() {
    std::int64_t until = timer_at_;
    if (!active_.empty()) until = std::min(until, steady_now() + kStallCheck);
    int timeout = -1;
    if (until != kNever) {
      const std::int64_t left = until - steady_now();
      timeout =
          left <= 0
              ? 0
              : static_cast<int>(std::min<std::int64_t>((left + 999'999) / 1'000'000, 60'000));
    }
    std::array<epoll_event, 128> events;
    const int count =
        ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    int running = 0;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == wake_.get()) {
        std::uint64_t value;
        [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &value, sizeof value);
        continue;
      }
      int what = 0;
      if (event.events & EPOLLIN) what |= CURL_CSELECT_IN;
      if (event.events & EPOLLOUT) what |= CURL_CSELECT_OUT;
      if (event.events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
      curl_multi_socket_action(multi_, event.data.fd, what, &running);
    }
    if (timer_at_ <= steady_now()) {
      timer_at_ = kNever;  // libcurl sets the next one
      curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
    }
  }

  void finish_done() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* easy = message->easy_handle;  // `message` is gone after the next call
      HttpTransfer* transfer = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
      const bool may_find_room = transfer->lacks_descriptor() && active_.size() > 1;
      if (may_find_room || transfer->lost_patience(code)) {
        put_back(transfer);
        continue;
      }
      note_connections(easy);
      counters_.bytes_received += transfer->received();
      HttpOutcome outcome;
      try {
        if (transfer->redirect(code)) {
          curl_multi_remove_handle(multi_, easy);
          start(transfer, easy);
          continue;
        }
        outcome = transfer->outcome(code);
      } catch (...) {
        outcome = std::current_exception();
      }
      end(transfer, std::move(outcome));
    }
  }

  void note_connections(CURL* easy) {
    long connections = 0;
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connections);
    if (connections == 0) return;
    counters_.connections += static_cast<std::uint64_t>(connections);
    curl_off_t connected = 0;  // with TLS where there is TLS
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    const double seconds = static_cast<double>(connected) * 1e-6;
    if (seconds <= 0) return;
    const bool first = settings_.usual_connect == 0;
    settings_.usual_connect = first ? seconds : std::min(seconds, settings_.usual_connect * 1.1);
  }

  /// Takes an active transfer from libcurl, to be sent again when it is its turn. The server's
  /// queue is full, or this process has no more descriptors: these are too many at a time.
  void put_back(HttpTransfer* transfer) {
    const bool lacks_descriptor = transfer->lacks_descriptor();
    curl_multi_remove_handle(multi_, transfer->easy());
    idle_.push_back(transfer->easy());
    const auto it = active_.find(transfer->id());
    waiting_.push_front(std::move(it->second));
    active_.erase(it);
    --counters_.requests;
    --counters_.in_flight;
    ++counters_.waiting;
    if (lacks_descriptor)
      limit_.lower(steady_now(), static_cast<int>(active_.size()));
    else
      limit_.finished(steady_now(), 0, true, true);
    counters_.limit = static_cast<std::uint64_t>(limit_.limit());
  }

  /// Takes an active transfer from libcurl and finishes it.
  void end(HttpTransfer* transfer, HttpOutcome outcome) {
    curl_multi_remove_handle(multi_, transfer->easy());
    idle_.push_back(transfer->easy());
    finish(transfer, std::move(outcome));
  }

  /// The last step of a transfer: nothing of it is left when its callback runs.
  void finish(HttpTransfer* transfer, HttpOutcome outcome) {
    const auto it = active_.find(transfer->id());
    const std::unique_ptr<HttpTransfer> owned = std::move(it->second);
    active_.erase(it);
    --counters_.in_flight;
    const HttpResponse* response = std::get_if<HttpResponse>(&outcome);
    if (response == nullptr) ++counters_.failures;
    const bool throttled =
        response != nullptr && (response->status == 429 || response->status == 503);
    if (throttled) ++counters_.throttled;
    limit_.finished(steady_now(), owned->received(), throttled, !waiting_.empty());
    counters_.limit = static_cast<std::uint64_t>(limit_.limit());
    owned->finish(std::move(outcome));
  }

  void end_stalled() {
    const std::int64_t now = steady_now();
    if (now - stalls_checked_at_ < kStallCheck) return;
    stalls_checked_at_ = now;
    std::vector<HttpTransfer*> stalled;
    for (const auto& [id, transfer] : active_)
      if (transfer->stalls(now, settings_)) stalled.push_back(transfer.get());
    for (HttpTransfer* transfer : stalled)
      end(transfer, std::make_exception_ptr(transfer->stall_error()));
  }

  void end_all() {
    {
      const std::lock_guard lock(mutex_);
      std::move(inbox_.begin(), inbox_.end(), std::back_inserter(waiting_));
      inbox_.clear();
    }
    while (!active_.empty())
      end(active_.begin()->second.get(), std::make_exception_ptr(interrupted()));
    for (const auto& transfer : waiting_) {
      --counters_.waiting;
      transfer->finish(std::make_exception_ptr(interrupted()));
    }
    waiting_.clear();
  }

  static constexpr std::int64_t kNever = INT64_MAX;
  static constexpr std::int64_t kStallCheck = 50'000'000;

  HttpTransfer::Settings settings_;
  Counters counters_;

  /// Guards the fields below, up to the next blank line; never held while calling out.
  std::mutex mutex_;
  std::vector<std::unique_ptr<HttpTransfer>> inbox_;
  std::vector<RequestId> cancelled_;
  RequestId last_id_ = 0;
  bool stopping_ = false;

  // Used by the loop's thread only.
  ConcurrencyLimit limit_;
  CURLM* multi_ = nullptr;
  std::deque<std::unique_ptr<HttpTransfer>> waiting_;
  std::unordered_map<RequestId, std::unique_ptr<HttpTransfer>> active_;
  std::vector<CURL*> idle_;
  std::int64_t timer_at_ = kNever;
  std::int64_t stalls_checked_at_ = 0;

  const Descriptor poll_;
  const Descriptor wake_;
  std::thread thread_;
};

HttpClient::HttpClient() : HttpClient(Options{}) {}
HttpClient::HttpClient(Options options) : loop_(std::make_unique<Loop>(options)) {}
HttpClient::~HttpClient() = default;

HttpClient::RequestId HttpClient::send(HttpRequest request, HttpDone done) {
  return loop_->send(std::move(request), std::move(done));
}

void HttpClient::cancel(RequestId id) { loop_->cancel(id); }
void HttpClient::stop() { loop_->stop(); }
bool HttpClient::is_own_thread() const { return loop_->is_own_thread(); }
const HttpClient::Counters& HttpClient::counters() const { return loop_->counters(); }

HttpResponse HttpClient::send_and_wait(HttpRequest request) {
  if (is_own_thread())
    throw Error(ErrorCode::internal, "the HTTP client's thread may not wait for itself");
  std::promise<HttpOutcome> promise;
  send(std::move(request),
       [&promise](HttpOutcome outcome) { promise.set_value(std::move(outcome)); });
  HttpOutcome outcome = promise.get_future().get();
  if (auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
  return std::move(std::get<HttpResponse>(outcome));
}

}  // namespace batchfs

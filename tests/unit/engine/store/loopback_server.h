#pragma once
// A small HTTP/1.1 server inside the test that can misbehave in every way a test needs.
//
//   LoopbackServer server([](const LoopbackServer::Request& request) -> LoopbackServer::Answer {
//     return {.body = "hello"};
//   });
//   client.send_and_wait({.url = server.url() + "/key"});

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace batchfs {

class LoopbackServer {
 public:
  struct Request {
    std::string method;
    std::string target;                          // path and query as sent
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    int connection = 0;  // counts from 0
  };

  struct Answer {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers = {};
    std::string body = {};
    // Misbehaviour.
    std::chrono::milliseconds delay{0};              // before the first byte
    std::optional<std::size_t> claimed_length = {};  // Content-Length, if not the body's
    bool chunked = false;                            // no Content-Length
    std::optional<std::size_t> end_after = {};  // bytes of the body, then the connection closes
    bool reset = false;                         // it closes with a TCP reset
    std::optional<std::size_t> stall_after =
        {};  // bytes of the body, then nothing until the client leaves
    std::optional<std::chrono::milliseconds> drip = {};  // between two bytes of the body
    bool raw = false;      // `body` is all that is sent, headers included
    bool hang_up = false;  // closes without a word
  };

  using Handler = std::function<Answer(const Request&)>;

  explicit LoopbackServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 512) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~LoopbackServer() {
    stopping_ = true;
    acceptor_.join();
    ::close(listener_);
    for (std::thread& thread : threads_) thread.join();
  }

  /// "http://127.0.0.1:PORT".
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// The same server by another name.
  std::string other_url() const { return "http://localhost:" + std::to_string(port_); }
  int port() const { return port_; }

  int requests() const { return requests_; }
  int connections() const { return connections_; }
  /// The maximum number of requests in progress at the same time.
  int most_at_once() const { return most_at_once_; }
  /// Connections that the client closed before it got an answer.
  int abandoned() const { return abandoned_; }
  std::vector<Request> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  /// The answer of a well-behaved server for `object`: the requested range, or all of it.
  static Answer object(const Request& request, const std::string& object,
                       const std::string& etag = {}) {
    Answer answer;
    if (!etag.empty()) answer.headers.emplace_back("ETag", etag);
    const auto range = request.headers.find("range");
    if (range == request.headers.end()) {
      answer.body = object;
      return answer;
    }
    const std::string spec = range->second.substr(std::strlen("bytes="));
    const std::size_t dash = spec.find('-');
    std::size_t first = 0, last = object.size() - 1;
    if (dash == 0) {
      first = object.size() - std::min<std::size_t>(object.size(), std::stoull(spec.substr(1)));
    } else {
      first = std::stoull(spec.substr(0, dash));
      if (dash + 1 < spec.size())
        last = std::min<std::size_t>(last, std::stoull(spec.substr(dash + 1)));
    }
    const std::string total = std::to_string(object.size());
    if (first >= object.size()) {
      answer.status = 416;
      answer.headers.emplace_back("Content-Range", "bytes */" + total);
      return answer;
    }
    answer.status = 206;
    answer.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                     std::to_string(last) + "/" + total);
    answer.body = object.substr(first, last - first + 1);
    return answer;
  }

 private:
  void accept_all() {
    while (!stopping_) {
      pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 10) <= 0) continue;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      const int one = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      const int number = connections_++;
      threads_.emplace_back([this, fd, number] {
        std::string buffer;
        bool reset = false;
        while (serve_one(fd, number, buffer, reset)) {
        }
        if (reset) {
          const linger now{.l_onoff = 1, .l_linger = 0};
          ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        ::close(fd);
      });
    }
  }

  /// Reads more bytes into `buffer`; false at the connection's end.
  bool receive(int fd, std::string& buffer) {
    while (!stopping_) {
      pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 10) <= 0) continue;
      char block[16384];
      const ssize_t n = ::recv(fd, block, sizeof block, 0);
      if (n <= 0) return false;
      buffer.append(block, static_cast<std::size_t>(n));
      return true;
    }
    return false;
  }

  bool is_gone(int fd) {
    char c;
    return stopping_ || ::recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  /// Waits; false when the client has left.
  bool wait(int fd, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      if (is_gone(fd)) return false;
      std::this_thread::sleep_for(
          std::min<std::chrono::milliseconds>(time, std::chrono::milliseconds(5)));
    }
    return true;
  }

  bool send(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  bool serve_one(int fd, int number, std::string& buffer, bool& reset) {
    std::size_t end;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
      if (!receive(fd, buffer)) return false;
    Request request = parse(buffer.substr(0, end));
    request.connection = number;
    buffer.erase(0, end + 4);
    if (const auto length = request.headers.find("content-length");
        length != request.headers.end()) {
      const std::size_t size = std::stoull(length->second);
      while (buffer.size() < size)
        if (!receive(fd, buffer)) return false;
      request.body = buffer.substr(0, size);
      buffer.erase(0, size);
    }
    ++requests_;
    {
      const std::lock_guard lock(mutex_);
      log_.push_back(request);
    }
    const int now = ++at_once_;
    int most = most_at_once_;
    while (most < now && !most_at_once_.compare_exchange_weak(most, now)) {
    }
    const Answer answer = handler_(request);
    const bool good = deliver(fd, request, answer);
    --at_once_;
    if (!good && !answer.end_after && !answer.hang_up) ++abandoned_;
    reset = answer.reset;
    return good;
  }

  bool deliver(int fd, const Request& request, const Answer& answer) {
    if (!wait(fd, answer.delay) || answer.hang_up) return false;
    if (answer.raw) {
      send(fd, answer.body);
      return false;
    }
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " Some reason\r\n";
    for (const auto& [name, value] : answer.headers) head += name + ": " + value + "\r\n";
    if (answer.chunked)
      head += "Transfer-Encoding: chunked\r\n";
    else
      head +=
          "Content-Length: " + std::to_string(answer.claimed_length.value_or(answer.body.size())) +
          "\r\n";
    if (!send(fd, head + "\r\n")) return false;
    if (request.method == "HEAD") return true;
    std::string body = answer.body;
    if (answer.end_after) body.resize(std::min(body.size(), *answer.end_after));
    if (answer.stall_after) body.resize(std::min(body.size(), *answer.stall_after));
    if (answer.drip) {
      for (const char c : body)
        if (!send(fd, std::string(1, c)) || !wait(fd, *answer.drip)) return false;
    } else if (answer.chunked) {
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", body.size());
      if (!body.empty() && !send(fd, size + body + "\r\n")) return false;
      if (!send(fd, "0\r\n\r\n")) return false;
    } else if (!send(fd, body)) {
      return false;
    }
    if (answer.stall_after)
      while (!is_gone(fd)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return !answer.end_after && !answer.stall_after;
  }

  static Request parse(const std::string& text) {
    Request request;
    const std::size_t line = std::min(text.find("\r\n"), text.size());
    const std::size_t space = text.find(' ');
    request.method = text.substr(0, space);
    request.target = text.substr(space + 1, text.rfind(' ', line) - space - 1);
    std::size_t at = line + 2;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find("\r\n", at), text.size());
      const std::size_t colon = text.find(':', at);
      std::string name = text.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      std::size_t value = colon + 1;
      while (value < end && text[value] == ' ') ++value;
      request.headers[name] = text.substr(value, end - value);
      at = end + 2;
    }
    return request;
  }

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> requests_{0}, connections_{0}, at_once_{0}, most_at_once_{0}, abandoned_{0};
  mutable std::mutex mutex_;
  std::vector<Request> log_;
  std::list<std::thread> threads_;  // of the acceptor alone until it has ended
  std::thread acceptor_;
};

}  // namespace batchfs

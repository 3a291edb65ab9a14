// An object store for benchmarks: files of a folder over HTTP/1.1, each answer as late as distant
// storage's.
//
//   bench_origin FOLDER [--port N] [--latency MS] [--connection-rate MB_PER_S] [--rate MB_PER_S]
//
// Prints its port, then serves until it is killed: GET and HEAD with ranges, ETag and If-Match, and
// ListObjectsV2 of the folder as a bucket (`/PATH?list-type=2&prefix=…&delimiter=/`).
// `/.origin/stats` returns counters as JSON and `/.origin/reset` sets them to zero, without delay
// and uncounted.
//
// One thread, epoll and sendfile: an answer costs a few system calls, so one core serves several
// GB/s and the reader under test is the bottleneck.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/origin/http_request.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  fs::path folder;
  int port = 0;
  double latency_ms = 0;
  double connection_rate = 0, rate = 0;  // bytes per second; 0: as fast as it goes
};

struct Counters {
  std::uint64_t requests = 0, gets = 0, heads = 0, lists = 0, missing = 0, ranges = 0, bytes = 0,
                connections = 0, most_in_flight = 0;
};

/// Pays out bytes at a rate, up to 10 ms of them at once.
class Meter {
 public:
  explicit Meter(double rate) : rate_(rate), last_(Clock::now()) {}
  bool limits() const { return rate_ > 0; }
  std::size_t allowed() {
    const auto now = Clock::now();
    saved_ =
        std::min(rate_ * 0.01, saved_ + rate_ * std::chrono::duration<double>(now - last_).count());
    last_ = now;
    return static_cast<std::size_t>(saved_);
  }
  void pay(std::size_t bytes) { saved_ -= static_cast<double>(bytes); }

 private:
  double rate_, saved_ = 0;
  Clock::time_point last_;
};

struct Connection {
  Connection(int descriptor, double rate) : fd(descriptor), meter(rate) {}
  ~Connection() {
    if (file >= 0) ::close(file);
    ::close(fd);
  }
  int fd;
  std::string in;        // received and not answered yet
  std::string out;       // headers and bodies made here
  std::size_t sent = 0;  // of `out`
  int file = -1;         // the body that follows
  off_t offset = 0;
  std::uint64_t left = 0;
  bool busy = false;  // a request is being answered
  bool close_after = false;
  std::uint32_t events = EPOLLIN;
  Meter meter;
};

class Origin {
 public:
  explicit Origin(Options options)
      : options_(std::move(options)),
        latency_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::milli>(options_.latency_ms))),
        meter_(options_.rate) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(options_.port));
    socklen_t length = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 1024) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      std::perror("bench_origin");
      std::exit(1);
    }
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
  }

  [[noreturn]] void serve() {
    std::vector<epoll_event> events(512);
    for (;;) {
      const int count =
          ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_)
          accept();
        else if (events[static_cast<std::size_t>(i)].events & (EPOLLERR | EPOLLHUP))
          drop(fd);
        else if (events[static_cast<std::size_t>(i)].events & EPOLLOUT)
          send(fd);
        else
          receive(fd);
      }
      const auto now = Clock::now();
      while (!due_.empty() && due_.top().when <= now) {
        const Due due = due_.top();
        due_.pop();
        const auto it = connections_.find(due.fd);
        if (it != connections_.end() && it->second.get() == due.connection) send(due.fd);
      }
    }
  }

 private:
  struct Due {
    Clock::time_point when;
    int fd;
    const Connection* connection;
    bool operator<(const Due& other) const { return when > other.when; }
  };

  int wait_ms() const {
    if (due_.empty()) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(due_.top().when - Clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 1000));
  }

  void watch(int operation, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_, operation, fd, &event);
  }

  void set_events(Connection& connection, std::uint32_t events) {
    if (connection.events == events) return;
    connection.events = events;
    watch(EPOLL_CTL_MOD, connection.fd, events);
  }

  void accept() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_[fd] = std::make_unique<Connection>(fd, options_.connection_rate);
      watch(EPOLL_CTL_ADD, fd, EPOLLIN);
      ++counters_.connections;
    }
  }

  void drop(int fd) {
    const auto it = connections_.find(fd);
    if (it == connections_.end()) return;
    if (it->second->busy) --in_flight_;
    connections_.erase(it);
  }

  void receive(int fd) {
    Connection& connection = *connections_.at(fd);
    char buffer[16384];
    for (;;) {
      const ssize_t got = ::read(fd, buffer, sizeof buffer);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return drop(fd);
      if (got < 0) break;
      connection.in.append(buffer, static_cast<std::size_t>(got));
      if (connection.in.size() > 1 << 20) return drop(fd);
    }
    next_request(connection);
  }

  /// Starts the next pending request, unless one is being answered.
  void next_request(Connection& connection) {
    if (connection.busy) return;
    const std::size_t end = connection.in.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const auto request = parse_request(std::string_view(connection.in).substr(0, end + 2));
    connection.in.erase(0, end + 4);
    connection.busy = true;
    counters_.most_in_flight = std::max(counters_.most_in_flight, ++in_flight_);
    bool delayed = true;
    if (!request) {
      answer(connection, "400 Bad Request", "", 0);
      connection.close_after = true;
    } else {
      const auto header = request->headers.find("connection");
      connection.close_after = header != request->headers.end() && header->second == "close";
      delayed = !request->path.starts_with("/.origin/");
      respond(connection, *request);
    }
    set_events(connection, 0);
    if (delayed && latency_.count() > 0)
      due_.push({Clock::now() + latency_, connection.fd, &connection});
    else
      send(connection.fd);
  }

  static void answer(Connection& connection, const std::string& status, const std::string& more,
                     std::uint64_t length) {
    connection.out = "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(length) +
                     "\r\nServer: bench_origin\r\n" + more + "\r\n";
    connection.sent = 0;
  }

  static void text(Connection& connection, const std::string& type, const std::string& body) {
    answer(connection, "200 OK", "Content-Type: " + type + "\r\n", body.size());
    connection.out += body;
  }

  void respond(Connection& connection, const HttpRequest& request) {
    if (request.path == "/.origin/stats") return text(connection, "application/json", stats());
    if (request.path == "/.origin/reset") {
      counters_ = {};
      return text(connection, "text/plain", "ok\n");
    }
    ++counters_.requests;
    if (request.method != "GET" && request.method != "HEAD")
      return answer(connection, "405 Method Not Allowed", "", 0);
    const fs::path relative = fs::path(request.path).relative_path();
    for (const fs::path& part : relative)
      if (part == "..") return answer(connection, "400 Bad Request", "", 0);
    if (request.query.contains("list-type")) return list(connection, request, relative);
    const bool head = request.method == "HEAD";
    ++(head ? counters_.heads : counters_.gets);
    const int file = ::open((options_.folder / relative).c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (file < 0 || ::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
      if (file >= 0) ::close(file);
      ++counters_.missing;
      return answer(connection, "404 Not Found", "", 0);
    }
    const auto size = static_cast<std::uint64_t>(info.st_size);
    char etag[64];
    std::snprintf(etag, sizeof etag, "\"%lx-%lx-%lx\"", static_cast<long>(info.st_size),
                  static_cast<long>(info.st_mtim.tv_sec), static_cast<long>(info.st_mtim.tv_nsec));
    std::string headers =
        std::string("Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\nETag: ") +
        etag + "\r\n";
    auto refuse = [&](const char* status, const std::string& more) {
      ::close(file);
      answer(connection, status, more, 0);
    };
    const auto match = request.headers.find("if-match"),
               none = request.headers.find("if-none-match");
    if (match != request.headers.end() && match->second != etag && match->second != "*")
      return refuse("412 Precondition Failed", headers);
    if (none != request.headers.end() && none->second == etag)
      return refuse("304 Not Modified", headers);
    std::string status = "200 OK";
    std::uint64_t first = 0, length = size;
    if (const auto range = request.headers.find("range"); range != request.headers.end()) {
      const auto part = parse_range(range->second, size);
      if (!part)
        return refuse("416 Range Not Satisfiable",
                      "Content-Range: bytes */" + std::to_string(size) + "\r\n");
      first = part->first;
      length = part->length;
      status = "206 Partial Content";
      headers += "Content-Range: bytes " + std::to_string(first) + "-" +
                 std::to_string(first + length - 1) + "/" + std::to_string(size) + "\r\n";
      ++counters_.ranges;
    }
    answer(connection, status, headers, length);
    if (head || length == 0) {
      ::close(file);
      return;
    }
    connection.file = file;
    connection.offset = static_cast<off_t>(first);
    connection.left = length;
  }

  /// ListObjectsV2 of the bucket at `relative`, everything in one page.
  void list(Connection& connection, const HttpRequest& request, const fs::path& relative) {
    ++counters_.lists;
    auto parameter = [&](const char* name) {
      const auto it = request.query.find(name);
      return it == request.query.end() ? std::string() : it->second;
    };
    const std::string prefix = parameter("prefix"), delimiter = parameter("delimiter");
    const fs::path bucket = options_.folder / relative;
    std::string contents;
    std::set<std::string> prefixes;
    std::error_code ignored;
    // Only the folder of the prefix: its siblings cannot begin with the prefix.
    const fs::path inside = bucket / prefix.substr(0, prefix.rfind('/') + 1);
    for (auto it = fs::recursive_directory_iterator(inside, ignored);
         it != fs::recursive_directory_iterator(); it.increment(ignored)) {
      const std::string key = fs::relative(it->path(), bucket).string();
      if (it->is_directory()) {
        if (delimiter == "/" && (key + "/").starts_with(prefix) && key.size() >= prefix.size()) {
          prefixes.insert(key + "/");
          it.disable_recursion_pending();
        }
        continue;
      }
      if (key.starts_with(prefix))
        contents += "<Contents><Key>" + xml_escaped(key) + "</Key><Size>" +
                    std::to_string(it->file_size()) + "</Size></Contents>";
    }
    std::string body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><Prefix>" +
                       xml_escaped(prefix) + "</Prefix><IsTruncated>false</IsTruncated>" + contents;
    for (const std::string& common : prefixes)
      body += "<CommonPrefixes><Prefix>" + xml_escaped(common) + "</Prefix></CommonPrefixes>";
    text(connection, "application/xml", body + "</ListBucketResult>");
  }

  std::string stats() const {
    const Counters& c = counters_;
    std::string out = "{";
    auto add = [&](const char* name, std::uint64_t value) {
      out += (out.size() > 1 ? ", \"" : "\"") + std::string(name) + "\": " + std::to_string(value);
    };
    add("requests", c.requests), add("gets", c.gets), add("heads", c.heads), add("lists", c.lists);
    add("missing", c.missing), add("ranges", c.ranges), add("bytes", c.bytes);
    add("connections", c.connections), add("most_in_flight", c.most_in_flight);
    return out + "}\n";
  }

  void send(int fd) {
    const auto it = connections_.find(fd);
    if (it == connections_.end()) return;
    Connection& connection = *it->second;
    if (!connection.busy) return;  // an old appointment
    while (connection.sent < connection.out.size()) {
      const ssize_t put = ::send(fd, connection.out.data() + connection.sent,
                                 connection.out.size() - connection.sent,
                                 MSG_NOSIGNAL | (connection.left > 0 ? MSG_MORE : 0));
      if (put < 0) return errno == EAGAIN ? set_events(connection, EPOLLOUT) : drop(fd);
      connection.sent += static_cast<std::size_t>(put);
    }
    // A turn for each connection: one that reads fast must not starve the others.
    std::size_t turn = 4 << 20;
    while (connection.left > 0) {
      std::size_t want = std::min<std::uint64_t>(connection.left, turn);
      for (Meter* meter : {&connection.meter, &meter_})
        if (meter->limits()) want = std::min(want, meter->allowed());
      if (want == 0 && turn > 0) {  // the limits require a pause
        set_events(connection, 0);
        due_.push({Clock::now() + std::chrono::milliseconds(2), fd, &connection});
        return;
      }
      if (turn == 0) return set_events(connection, EPOLLOUT);
      const ssize_t put = ::sendfile(fd, connection.file, &connection.offset, want);
      if (put < 0 && errno == EAGAIN) return set_events(connection, EPOLLOUT);
      if (put <= 0) return drop(fd);
      for (Meter* meter : {&connection.meter, &meter_})
        if (meter->limits()) meter->pay(static_cast<std::size_t>(put));
      connection.left -= static_cast<std::uint64_t>(put);
      counters_.bytes += static_cast<std::uint64_t>(put);
      turn -= static_cast<std::size_t>(put);
    }
    if (connection.file >= 0) ::close(connection.file);
    connection.file = -1;
    connection.busy = false;
    --in_flight_;
    if (connection.close_after) return drop(fd);
    set_events(connection, EPOLLIN);
    next_request(connection);
  }

  const Options options_;
  const Clock::duration latency_;
  Meter meter_;
  int listener_ = -1, epoll_ = -1;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::priority_queue<Due> due_;
  Counters counters_;
  std::uint64_t in_flight_ = 0;
};

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  ::signal(SIGPIPE, SIG_IGN);  // a client that leaves is a failed sendfile(), no more
  bench::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--")) {
      options.folder = name;
      continue;
    }
    if (++i == count) break;
    const double value = std::atof(arguments[i]);
    if (name == "--port")
      options.port = static_cast<int>(value);
    else if (name == "--latency")
      options.latency_ms = value;
    else if (name == "--connection-rate")
      options.connection_rate = value * 1e6;
    else if (name == "--rate")
      options.rate = value * 1e6;
    else
      options.folder.clear();
  }
  if (options.folder.empty()) {
    std::fprintf(stderr,
                 "usage: bench_origin FOLDER [--port N] [--latency MS] [--connection-rate MB/S] "
                 "[--rate MB/S]\n");
    return 2;
  }
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  bench::Origin(options).serve();
}

// The bound of reading a remote store: plain GETs of its objects, many at once, bodies thrown away.
//
//   bench_get PORT CONNECTIONS < LIST_OF_PATHS
//
// One thread and epoll over keep-alive connections to 127.0.0.1. Prints the bytes of the bodies and
// the seconds.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_get: %s\n", what.c_str());
  std::exit(1);
}

struct Connection {
  int fd = -1;
  std::string head;  // of the answer, until it is complete
  std::size_t body_left = 0;
  bool in_body = false;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) fail("usage: bench_get PORT CONNECTIONS < LIST_OF_PATHS");
  std::vector<std::string> paths;
  for (std::string line; std::getline(std::cin, line);) paths.push_back(line);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(arguments[1])));
  std::vector<Connection> connections(std::min<std::size_t>(std::atoi(arguments[2]), paths.size()));
  std::vector<char> buffer(1 << 20);
  std::size_t next = 0, bytes = 0, open = 0;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const auto start = std::chrono::steady_clock::now();

  auto ask = [&](Connection& connection) {
    if (next == paths.size()) {
      ::close(connection.fd);
      --open;
      return;
    }
    const std::string request = "GET " + paths[next++] + " HTTP/1.1\r\nHost: origin\r\n\r\n";
    if (::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      fail("sending a request");
    connection.head.clear();
    connection.in_body = false;
  };
  for (std::size_t i = 0; i < connections.size(); ++i) {
    Connection& connection = connections[i];
    connection.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      fail("connecting");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, connection.fd, &event);
    ++open;
    ask(connection);
  }
  std::vector<epoll_event> events(256);
  while (open > 0) {
    const int ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int e = 0; e < ready; ++e) {
      Connection& connection = connections[events[static_cast<std::size_t>(e)].data.u64];
      const ssize_t got = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) fail("a connection ended");
      std::size_t body = static_cast<std::size_t>(got);
      if (!connection.in_body) {
        connection.head.append(buffer.data(), body);
        const std::size_t end = connection.head.find("\r\n\r\n");
        if (end == std::string::npos) continue;
        if (connection.head.compare(9, 3, "200") != 0)
          fail(connection.head.substr(0, connection.head.find('\r')));
        const std::size_t length = connection.head.find("Content-Length: ");
        if (length == std::string::npos || length > end) fail("no Content-Length");
        connection.body_left = std::strtoull(connection.head.c_str() + length + 16, nullptr, 10);
        connection.in_body = true;
        body = connection.head.size() - end - 4;
      }
      bytes += body;
      connection.body_left -= body;
      if (connection.body_left == 0) ask(connection);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%zu %.6f\n", bytes, seconds.count());
}

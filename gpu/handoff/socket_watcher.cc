#include "gpu/handoff/socket_watcher.h"

#include <cerrno>
#include <cstdint>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "engine/base/blocked_signals.h"
#include "engine/base/system_error.h"

namespace batchfs::handoff {

namespace {

void watch(int events, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) != 0)
    throw Error(ErrorCode::no_memory,
                std::string("a socket for programs: ") + describe_system_error(errno));
}

}  // namespace

SocketWatcher::SocketWatcher()
    : events_(opened(::epoll_create1(EPOLL_CLOEXEC), "epoll")),
      wake_(opened(::eventfd(0, EFD_CLOEXEC), "eventfd")) {
  watch(events_.get(), wake_.get());
  thread_ = std::thread([this] { run(); });
}

SocketWatcher::~SocketWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void SocketWatcher::add(int socket, Readable readable) {
  const std::lock_guard lock(mutex_);
  watch(events_.get(), socket);
  sockets_[socket] = std::make_shared<const Readable>(std::move(readable));
}

void SocketWatcher::remove(int socket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ != socket; });
  if (sockets_.erase(socket) > 0) ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, socket, nullptr);
}

void SocketWatcher::run() {
  for (;;) {
    // One at a time: the next may be removed while the function of this one runs.
    epoll_event event{};
    if (::epoll_wait(events_.get(), &event, 1, -1) != 1) continue;  // EINTR
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    const int socket = event.data.fd;
    const auto found = sockets_.find(socket);
    if (found == sockets_.end()) continue;
    const std::shared_ptr<const Readable> readable = found->second;
    running_ = socket;
    lock.unlock();
    const bool again = (*readable)();
    lock.lock();
    running_ = -1;
    if (!again && sockets_.erase(socket) > 0)
      ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, socket, nullptr);
    changed_.notify_all();
  }
}

}  // namespace batchfs::handoff

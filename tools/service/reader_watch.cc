#include "tools/service/reader_watch.h"

#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/system_error.h"

namespace batchfs {

ReaderWatch::ReaderWatch(int fd)
    : stop_(opened(::eventfd(0, EFD_CLOEXEC), "eventfd")), thread_([this, fd] {
        pollfd ends[] = {{fd, 0, 0}, {stop_.get(), POLLIN, 0}};
        while (::poll(ends, 2, -1) < 0 && errno == EINTR) {
        }
        // A pipe without a reader has POLLERR, a socket without a peer POLLHUP.
        if (ends[1].revents == 0 && (ends[0].revents & (POLLERR | POLLHUP)) != 0) ::_exit(1);
      }) {}

ReaderWatch::~ReaderWatch() {
  const std::uint64_t one = 1;
  // A counter takes it.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace batchfs

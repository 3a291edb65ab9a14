#pragma once
// An open file descriptor that is closed by its owner.

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace batchfs {

/// -1: none. Keeps errno as it is when it closes.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = other.release();
    }
    return *this;
  }

  int get() const { return fd_; }
  /// From now on the caller closes it.
  int release() { return std::exchange(fd_, -1); }

 private:
  void close() {
    if (fd_ < 0) return;
    const int before = errno;
    ::close(fd_);
    errno = before;
  }

  int fd_;
};

}  // namespace batchfs

#pragma once
// Attacks of a process on a descriptor that it was sent: changing the bytes that others read
// through it, and killing them.

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace batchfs {

/// A file of 64 KiB with other contents than the attacked one, to copy from.
inline int other_contents() {
  const int fd = ::memfd_create("other", MFD_CLOEXEC);
  const std::vector<char> bytes(64 << 10, 'x');
  if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  return fd;
}

/// Tries to map the file shared, and to make the mapping writable. Returns true if bytes could be
/// written.
inline bool can_write_mapping(int fd) {
  void* data = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  bool done = data != MAP_FAILED;
  if (!done) data = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return false;
  done |= ::mprotect(data, 4096, PROT_READ | PROT_WRITE) == 0 ||
          ::madvise(data, 4096, MADV_REMOVE) == 0;
  if (done) *static_cast<volatile char*>(data) = 'x';
  ::munmap(data, 4096);
  return done;
}

inline bool can_splice_into(int fd) {
  int ends[2];
  loff_t begin = 0;
  if (::pipe(ends) != 0 || ::write(ends[1], "xxxx", 4) != 4) return true;
  const bool done = ::splice(ends[0], nullptr, fd, &begin, 4, 0) > 0;
  ::close(ends[0]);
  ::close(ends[1]);
  return done;
}

/// The names of the ways to change contents or size through this descriptor; empty if there is
/// none.
inline std::string attacks_that_work(int fd) {
  std::string worked;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  struct stat before {};
  ::fstat(fd, &before);
  const int other = other_contents();
  const auto attempt = [&](const char* name, bool done) {
    if (done) worked += std::string(worked.empty() ? "" : ", ") + name;
  };
  ::fchmod(fd, 0666);  // may enable the calls below
  [[maybe_unused]] const int refused = ::fchown(fd, 65534, 65534);
  const off_t size = before.st_size;
  attempt("ftruncate", ::ftruncate(fd, 1) == 0 || ::ftruncate(fd, size + (4 << 20)) == 0);
  attempt("truncate", ::truncate(path.c_str(), 1) == 0);
  attempt("fallocate", ::fallocate(fd, 0, size, 4 << 20) == 0 ||
                           ::fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == 0);
  attempt("O_TRUNC", ::open(path.c_str(), O_RDONLY | O_TRUNC | O_CLOEXEC) >= 0 &&
                         ::fstat(fd, &before) == 0 && before.st_size != size);
  attempt("write", ::write(fd, "x", 1) > 0 || ::pwrite(fd, "x", 1, 0) > 0);
  attempt("a mapping", can_write_mapping(fd));
  attempt("splice", can_splice_into(fd));
  off_t zero = 0;
  ::lseek(fd, 0, SEEK_SET);
  attempt("sendfile", ::sendfile(fd, other, &zero, 4) > 0);
  loff_t from = 0, to = 0;
  attempt("copy_file_range", ::copy_file_range(other, &from, fd, &to, 4, 0) > 0);
  attempt("FICLONE", ::ioctl(fd, FICLONE, other) == 0);
  attempt("punching a hole",
          ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0 ||
              ::fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) == 0);
  for (const int flags : {O_RDWR, O_WRONLY}) {
    const int again = ::open(path.c_str(), flags | O_CLOEXEC);
    if (again < 0) continue;
    attempt("writing after opening again", ::pwrite(again, "x", 1, 0) > 0 ||
                                               ::ftruncate(again, 1) == 0 ||
                                               can_write_mapping(again));
    ::close(again);
  }
  ::close(other);
  struct stat after {};
  attempt("its size", ::fstat(fd, &after) != 0 || after.st_size != size);
  return worked;
}

/// Runs `body` in a process of its own, as a user without any capability and, if permitted, in a
/// user namespace, as in a container. Returns the result of `body`, at most 4 KiB of it.
inline std::string in_container(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string answer;
    if (::geteuid() == 0 &&
        (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0))
      answer = "setresuid";
    [[maybe_unused]] const int refused = ::unshare(CLONE_NEWUSER);
    try {
      if (answer.empty()) answer = body();
    } catch (const std::exception& error) {
      answer = error.what();
    }
    [[maybe_unused]] const ssize_t written = ::write(ends[1], answer.data(), answer.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[4096];
  ssize_t got = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? std::string(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)))
                     : "the process died";
}

}  // namespace batchfs

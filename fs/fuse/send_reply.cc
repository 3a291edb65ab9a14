#include "fs/fuse/send_reply.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include <fmt/format.h>

#include "fs/fuse/fuse_abi.h"
#include "fs/fuse/unmount.h"

namespace batchfs {

ssize_t send_reply(int fuse, const iovec* parts, int count, Log& log) {
  const ssize_t written = ::writev(fuse, parts, count);
  const auto& header = *static_cast<const fuse_abi::OutHeader*>(parts[0].iov_base);
  const int cause = errno;
  // ENOENT: the kernel wants no answer any more.
  if (written >= 0 || cause == ENOENT || header.unique == 0 || has_session_ended(fuse)) {
    errno = cause;
    return written;
  }
  const fuse_abi::OutHeader refusal{sizeof refusal, -EIO, header.unique};
  if (::write(fuse, &refusal, sizeof refusal) < 0 && errno != ENOENT && !has_session_ended(fuse)) {
    log.error(fmt::format("the kernel takes no answers: {}", std::strerror(errno)));
    ::_exit(1);  // the next daemon gets the requests
  }
  errno = cause;
  return written;
}

}  // namespace batchfs

#include "engine/base/error.h"

#include <cerrno>

namespace batchfs {

int to_errno(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return EINVAL;
    case ErrorCode::not_found: return ENOENT;
    case ErrorCode::not_supported: return EOPNOTSUPP;
    case ErrorCode::corrupt: return EIO;
    case ErrorCode::io: return EIO;
    case ErrorCode::access_denied: return EACCES;
    case ErrorCode::no_memory: return ENOMEM;
    case ErrorCode::timed_out: return ETIMEDOUT;
    case ErrorCode::interrupted: return EINTR;
    case ErrorCode::stale: return ESTALE;
    case ErrorCode::internal: return EIO;
  }
  return EIO;
}

}  // namespace batchfs

#pragma once
// The error of a file of a mount that cannot be opened or read.

#include <cerrno>
#include <string>

#include "engine/base/error.h"
#include "engine/base/system_error.h"

namespace batchfs::reader {

/// `cause` is an errno.
inline Error file_error(int cause, const std::string& path) {
  switch (cause) {
    case ENOENT:
    case ENOTDIR:
      return Error(ErrorCode::not_found, describe_system_error(cause), path);
    case EACCES:
    case EPERM:
      return Error(ErrorCode::access_denied, describe_system_error(cause), path);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Error(ErrorCode::no_memory, describe_system_error(cause), path);
    case ESTALE:
      return Error(ErrorCode::stale,
                   "the store has changed since this was opened; what was read stays valid. Open "
                   "it again; the mount's .batchfs/log names what changed",
                   path);
    case EIO:
      return Error(ErrorCode::io, "the batch cannot be made: the mount's .batchfs/log says why",
                   path);
    default:
      return Error(ErrorCode::io, describe_system_error(cause), path);
  }
}

}  // namespace batchfs::reader

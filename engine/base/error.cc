#include "engine/base/error.h"

#include <cerrno>
#include <new>

namespace batchfs {

Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::no_memory, "out of memory");
  } catch (const std::exception& error) {
    return Error(ErrorCode::internal, error.what());
  } catch (...) {
    return Error(ErrorCode::internal, "unknown");
  }
}

int to_errno(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return EINVAL;
    case ErrorCode::not_found:
      return ENOENT;
    case ErrorCode::not_supported:
      return EOPNOTSUPP;
    case ErrorCode::corrupt:
      return EIO;
    case ErrorCode::io:
      return EIO;
    case ErrorCode::access_denied:
      return EACCES;
    case ErrorCode::no_memory:
      return ENOMEM;
    case ErrorCode::timed_out:
      return ETIMEDOUT;
    case ErrorCode::interrupted:
      return EINTR;
    case ErrorCode::stale:
      return ESTALE;
    case ErrorCode::internal:
      return EIO;
  }
  return EIO;
}

}  // namespace batchfs

#include "engine/base/system_error.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/resource.h>

// Without fmt: part of the reader's library, which needs the C++ runtime only.

namespace batchfs {

namespace {

bool is_limited(__rlimit_resource resource, rlimit& limit) {
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

std::string limit_of(__rlimit_resource resource) {
  rlimit limit{};
  return is_limited(resource, limit) ? std::to_string(limit.rlim_cur) : "no limit of its own";
}

}  // namespace

std::string describe_system_error(int error) {
  if (error == EMFILE)
    return "too many open files: this process may have " + limit_of(RLIMIT_NOFILE) +
           " (RLIMIT_NOFILE); raise it with ulimit -n or LimitNOFILE=";
  if (error == ENFILE) return "too many open files on this machine; raise the sysctl fs.file-max";
  if (rlimit limit{}; error == ENOMEM && is_limited(RLIMIT_AS, limit))
    return std::string(std::strerror(error)) + ": this process may have " +
           std::to_string(limit.rlim_cur) +
           " bytes of address space (RLIMIT_AS); raise it with ulimit -v or LimitAS=";
  return std::strerror(error);
}

int opened(int descriptor, const char* where) {
  if (descriptor < 0) throw Error(ErrorCode::io, describe_system_error(errno), where);
  return descriptor;
}

std::string describe_thread_limit() {
  return "no more threads can be started: this user may have " + limit_of(RLIMIT_NPROC) +
         " (RLIMIT_NPROC), a container or a service perhaps fewer (pids.max); raise it with "
         "ulimit -u or TasksMax=, or take fewer --threads";
}

Error explain(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return Error(ErrorCode::no_memory, describe_thread_limit());
  } catch (...) {  // error_of() knows
  }
  return error_of(thrown);
}

}  // namespace batchfs

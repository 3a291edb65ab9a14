#pragma once
// Errors of the system in words that say what to do.

#include <exception>
#include <string>

#include "engine/base/error.h"

namespace batchfs {

/// As strerror(3) has it. Where a limit of open files was reached (EMFILE, ENFILE), it is named
/// with its value and with the places that set it.
std::string describe_system_error(int error);

/// A new descriptor as it is. Throws io where it is -1, with errno's reason; `where` names the
/// call.
int opened(int descriptor, const char* where);

/// EAGAIN of pthread_create(3) and fork(2).
std::string describe_thread_limit();

/// As error_of(), but a thread that could not be started (std::system_error) is no_memory and names
/// the limit. Not part of error_of() because the reader's library, which is small, has that.
Error explain(const std::exception_ptr& thrown);

}  // namespace batchfs

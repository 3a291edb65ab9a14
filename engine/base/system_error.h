#pragma once
// System errors in words that name the remedy.

#include <exception>
#include <string>

#include "engine/base/error.h"

namespace batchfs {

/// The text of strerror(3). Where files or memory are refused (EMFILE, ENFILE, ENOMEM) and a limit
/// of this process may be why, the text names its value and the settings that control it.
std::string describe_system_error(int error);

/// A new descriptor as it is. Throws io where it is -1, with errno's reason; `where` names the
/// call.
int opened(int descriptor, const char* where);

/// EAGAIN of pthread_create(3) and fork(2).
std::string describe_thread_limit();

/// Like error_of(), but a thread that could not be started (std::system_error) is no_memory and
/// names the limit. Not part of error_of() because the reader's library, which is small, contains
/// that.
Error explain(const std::exception_ptr& thrown);

}  // namespace batchfs

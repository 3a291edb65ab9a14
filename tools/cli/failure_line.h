#pragma once
// The line on standard error that says why a command failed.

#include <string>

#include "engine/base/error.h"

namespace batchfs {

/// Wrong usage has no ErrorCode; this is its name.
constexpr char kUsageCode[] = "usage";

/// "not_found".
const char* name_of(ErrorCode code);

/// `batchfs: WHAT failed: MESSAGE`, for a person; or, where the variable BATCHFS_ERRORS is "json",
/// {"command": WHAT, "code": CODE, "message": MESSAGE}, for a program. One line, whatever is in
/// them, with a newline; WHAT and MESSAGE as shown_line() has them.
std::string failure_line(const std::string& what, const std::string& code,
                         const std::string& message);

}  // namespace batchfs

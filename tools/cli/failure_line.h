#pragma once
// The line on standard error about a command's failure.

#include <string>

#include "engine/base/error.h"

namespace batchfs {

/// Wrong usage has no ErrorCode; this is its name.
constexpr char kUsageCode[] = "usage";

/// "not_found".
const char* name_of(ErrorCode code);

/// `batchfs: WHAT failed: MESSAGE`, for a person; or, if the variable BATCHFS_ERRORS is "json",
/// {"command": WHAT, "code": CODE, "message": MESSAGE}, for a program. One line with a newline,
/// whatever its parts contain; WHAT and MESSAGE in the form of shown_line().
std::string failure_line(const std::string& what, const std::string& code,
                         const std::string& message);

}  // namespace batchfs

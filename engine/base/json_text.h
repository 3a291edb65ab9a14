#pragma once
// JSON for output.

#include <string>

#include "engine/base/json.h"

namespace batchfs {

/// Indented, or one line with `indent` -1. Bytes that are not UTF-8 (a directory's name may hold
/// any) become U+FFFD.
std::string json_text(const Json& value, int indent = 2);

}  // namespace batchfs

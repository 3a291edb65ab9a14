#pragma once
// Limits of JSON texts, checked in one pass before anything is parsed: a parsed document takes up
// to 25 times the memory of its text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace batchfs {

/// The result of one pass over a text. For invalid JSON it is an upper bound of what a parser sees
/// before it finds the error.
struct JsonShape {
  /// Values of each object and list, in the order in which they open.
  std::vector<std::uint32_t> sizes;
  std::uint64_t memory = 0;  // bytes: the parsed document and the parser's own memory
};

/// Throws invalid_argument for a text that exceeds a limit of engine/base/limits.h, no_memory for
/// one that takes more than `memory` bytes; `where` is the place. Takes at most `memory` bytes
/// itself.
JsonShape check_json_limits(std::string_view text, std::uint64_t memory, const std::string& where);

/// Bytes that a value takes, with all below it. Takes linear time.
std::uint64_t json_memory(const Json& value);

}  // namespace batchfs

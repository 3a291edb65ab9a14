#pragma once
// Explains why a text is not JSON, so that a person finds and mends the place.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace batchfs {

struct JsonMistake {
  std::size_t offset;  // in bytes, of the first character at fault; the text's length at its end
  std::string why;     // "a comma is missing before this"
};

/// The first place where `text` leaves the grammar of RFC 8259; nullopt if it does not. No
/// recursion deeper than the nesting of `text`, which the caller limits.
std::optional<JsonMistake> find_json_mistake(std::string_view text);

/// "line 3, column 5: a comma is missing before this: `"size": 4 ^"stride": 2`": the line with a
/// caret in front of the place, cut to about 80 characters, without control characters.
std::string describe_json_mistake(std::string_view text, const JsonMistake& mistake);

}  // namespace batchfs

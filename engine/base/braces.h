#pragma once
// Braces as shells expand them: "y{1979..1981}" is y1979, y1980, y1981; "{a,b}" is a, b.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace batchfs {

struct ExpandedText {
  std::string text;  // "y1979"
  std::string key;   // the braces' value, "1979"; several are joined by '-'
};

/// Expands a text with braces, the last braces fastest: lists and ranges of whole numbers,
/// `{01..12}` with leading zeros, `{1980..2020..10}` with a step. Other braces and nested ones stay
/// as they are. A text without braces expands to itself, with an empty key. Throws invalid_argument
/// for more than `most`.
std::vector<ExpandedText> expand_braces(std::string_view text, std::size_t most);

}  // namespace batchfs

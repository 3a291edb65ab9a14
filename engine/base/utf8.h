#pragma once
// UTF-8 and the code points in it.

#include <string>
#include <string_view>

namespace batchfs {

/// Well-formed, as table 3-7 of the Unicode standard has it.
bool is_utf8(std::string_view text);

/// The code points of text that is UTF-8.
std::u32string code_points(std::string_view text);

/// What is no code point becomes U+FFFD.
void append_utf8(std::string& text, char32_t point);

}  // namespace batchfs

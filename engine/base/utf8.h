#pragma once
// UTF-8 and the code points in it.

#include <string>
#include <string_view>

namespace batchfs {

/// Well-formed, as table 3-7 of the Unicode standard has it.
bool is_utf8(std::string_view text);

/// The code points of text that is UTF-8.
std::u32string code_points(std::string_view text);

/// Is this byte one of a code point other than the first?
inline bool is_utf8_tail(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the well-formed code point that `text` begins with; 0 when there is none.
std::size_t first_code_point(std::string_view text);

/// An invalid code point becomes U+FFFD.
void append_utf8(std::string& text, char32_t point);

}  // namespace batchfs

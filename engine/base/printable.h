#pragma once
// Text from outside, made safe to show.
//
// Names, attributes and error texts come from stores, servers and other processes. On a terminal,
// some characters are commands: control characters move the cursor and change earlier output, also
// the C1 ones (U+0080 to U+009F) and their single bytes. Others deceive the eye: bidirectional
// controls reorder a line, zero-width characters make two names look alike. All output for people
// goes through this one function.

#include <string>
#include <string_view>

namespace batchfs {

enum class LineBreaks {
  flatten,  // line breaks and tabs become spaces: the text stays one line
  keep,     // '\n' and '\t' stay
};

/// Each harmful character is replaced by its escape (`\x1b`, `\u202e`), each byte that is not part
/// of UTF-8 by `\x9b`.
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::flatten);

/// Is this code point harmful on a terminal or in a log? Includes every control character.
bool is_harmful(char32_t point);

}  // namespace batchfs

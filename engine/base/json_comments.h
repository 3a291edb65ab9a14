#pragma once
// Comments in JSON that people write.

#include <string>
#include <string_view>

namespace batchfs {

/// The text with spaces in place of each comment, `// to the end of the line` or `/* ... */`
/// outside of strings: lines and columns stay. Throws invalid_argument, `where` as the place, for a
/// comment that is not closed.
std::string without_comments(std::string_view text, const std::string& where);

}  // namespace batchfs

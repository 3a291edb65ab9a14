#pragma once
// Lines for people, of bounded length.

#include <cstddef>
#include <string>
#include <string_view>

namespace batchfs {

inline constexpr std::size_t kMaxShownLine = 2048;  // bytes

/// Like printable(), in one line; the middle of a longer one is left out, and the line states how
/// much.
std::string shown_line(std::string_view text, std::size_t max = kMaxShownLine);

}  // namespace batchfs

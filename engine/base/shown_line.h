#pragma once
// Lines for people, of bounded length.

#include <cstddef>
#include <string>
#include <string_view>

namespace batchfs {

inline constexpr std::size_t kMaxShownLine = 2048;  // bytes

/// As printable(), in one line; of a longer one the middle is left out, and the line says how much.
std::string shown_line(std::string_view text, std::size_t max = kMaxShownLine);

}  // namespace batchfs

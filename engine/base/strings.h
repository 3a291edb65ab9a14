#pragma once
// Text that people type and read: sizes, durations, lists.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace batchfs {

/// "256M" -> bytes. K, M, G, T are powers of 1024; a plain number is bytes. nullopt when malformed
/// or past 2^63.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// 4152960 -> "4.0 MB" (1024-based, as parse_size reads it).
std::string format_size(std::uint64_t bytes);

/// 1104504 -> "1,104,504".
std::string format_count(std::uint64_t count);

/// A to Z become a to z, whatever the locale; other bytes stay.
std::string to_lower(std::string text);

/// "" when all are empty.
std::string first_nonempty(std::initializer_list<std::string> texts);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// A whole decimal number without sign, spaces or leading zeros (but "0").
std::optional<std::uint64_t> parse_exact_number(std::string_view digits);

/// Is this usable as a file name: 1 to 255 bytes, not "." or "..", no '/', NUL or control
/// character?
bool is_file_name(std::string_view name);

}  // namespace batchfs

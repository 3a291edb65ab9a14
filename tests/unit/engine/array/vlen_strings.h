#pragma once
// Chunks of strings of any length, as numcodecs' codecs vlen-utf8 and vlen-bytes encode them.

#include <string>
#include <vector>

namespace batchfs {

using Strings = std::vector<std::string>;

inline std::string vlen(const Strings& strings) {
  std::string bytes;
  const auto number = [&bytes](std::size_t n) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(n >> (8 * i));
  };
  number(strings.size());
  for (const std::string& string : strings) {
    number(string.size());
    bytes += string;
  }
  return bytes;
}

}  // namespace batchfs

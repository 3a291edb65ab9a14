#include "engine/base/utf8.h"

namespace batchfs {

std::size_t first_code_point(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead < 0x80   ? 1
                           : lead < 0xc2 ? 0
                           : lead < 0xe0 ? 2
                           : lead < 0xf0 ? 3
                           : lead < 0xf5 ? 4
                                         : 0;
  if (size > text.size()) return 0;
  for (std::size_t k = 1; k < size; ++k)
    if (!is_utf8_tail(text[k])) return 0;
  // The limits that the first byte sets to the second.
  const unsigned second = size > 1 ? static_cast<unsigned char>(text[1]) : 0;
  const bool good = lead == 0xe0   ? second >= 0xa0  // else it would be shorter
                    : lead == 0xed ? second <= 0x9f  // surrogates
                    : lead == 0xf0 ? second >= 0x90
                    : lead == 0xf4 ? second <= 0x8f  // up to U+10FFFF
                                   : true;
  return good ? size : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = first_code_point(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::u32string code_points(std::string_view text) {
  std::u32string points;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      points += byte;
    else if (byte >= 0xc0)
      points += byte & (byte < 0xe0 ? 0x1f : byte < 0xf0 ? 0x0f : 0x07);
    else if (!points.empty())
      points.back() = points.back() << 6 | (byte & 0x3f);
  }
  return points;
}

void append_utf8(std::string& text, char32_t point) {
  if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) point = 0xfffd;
  const auto tail = [&text](char32_t bits) { text += static_cast<char>(0x80 | (bits & 0x3f)); };
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xc0 | point >> 6);
    tail(point);
  } else if (point < 0x10000) {
    text += static_cast<char>(0xe0 | point >> 12);
    tail(point >> 6);
    tail(point);
  } else {
    text += static_cast<char>(0xf0 | point >> 18);
    tail(point >> 12);
    tail(point >> 6);
    tail(point);
  }
}

}  // namespace batchfs

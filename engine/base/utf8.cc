#include "engine/base/utf8.h"

namespace batchfs {

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    constexpr std::size_t kNone = 4;
    const std::size_t more = lead < 0x80   ? 0
                             : lead < 0xc2 ? kNone
                             : lead < 0xe0 ? 1
                             : lead < 0xf0 ? 2
                             : lead < 0xf5 ? 3
                                           : kNone;
    if (more == kNone || text.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      unsigned char low = 0x80, high = 0xbf;
      if (k == 1 && lead == 0xe0) low = 0xa0;   // else it would be shorter
      if (k == 1 && lead == 0xed) high = 0x9f;  // surrogates
      if (k == 1 && lead == 0xf0) low = 0x90;
      if (k == 1 && lead == 0xf4) high = 0x8f;  // up to U+10FFFF
      if (next < low || next > high) return false;
    }
    i += more + 1;
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

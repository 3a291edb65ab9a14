#include "engine/base/printable.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "engine/base/utf8.h"

namespace batchfs {

namespace {

struct Range {
  char32_t first, last;
};

/// Sorted. Unicode's categories Cc and Cf, without those that scripts need to be read (Arabic
/// number signs).
constexpr Range kHarmful[] = {
    {0x0000, 0x001f},  // C0
    {0x007f, 0x009f},  // DEL, C1
    {0x00ad, 0x00ad},  // soft hyphen
    {0x034f, 0x034f},  // combining grapheme joiner, not visible
    {0x061c, 0x061c},  // Arabic letter mark
    {0x180e, 0x180e},  // Mongolian vowel separator
    {0x200b, 0x200f},  // zero-width characters, marks of direction
    {0x2028, 0x202e},  // line and paragraph separators, embeddings and overrides of direction
    {0x2060, 0x206f},  // word joiner, invisible operators, isolates of direction, deprecated format
                       // characters
    {0xfeff, 0xfeff},  // byte order mark, zero-width no-break space
    {0xfff9, 0xfffb},  // interlinear annotations
    {0xe0000, 0xe007f},  // tags
};

}  // namespace

bool is_harmful(char32_t point) {
  const auto* range =
      std::lower_bound(std::begin(kHarmful), std::end(kHarmful), point,
                       [](const Range& one, char32_t value) { return one.last < value; });
  return range != std::end(kHarmful) && range->first <= point;
}

std::string printable(std::string_view text, LineBreaks breaks) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = first_code_point(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(size, 1));
    text.remove_prefix(bytes.size());
    const char32_t point =
        size == 0 ? static_cast<unsigned char>(bytes.front()) : code_points(bytes).front();
    const bool is_break = point == '\n' || point == '\t';
    if (is_break && breaks == LineBreaks::keep)
      out += bytes;
    else if (is_break || point == '\r')
      out += ' ';
    else if (size == 0 || (point < 0x80 && is_harmful(point)))
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(point));
    else if (is_harmful(point))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(point));
    else
      out += bytes;
  }
  return out;
}

}  // namespace batchfs

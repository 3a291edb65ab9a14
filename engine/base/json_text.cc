#include "engine/base/json_text.h"

#include <string_view>

#include <fmt/format.h>

#include "engine/base/printable.h"
#include "engine/base/utf8.h"

namespace batchfs {

namespace {

/// Characters outside ASCII stand in strings only, where an escape means the same.
std::string escape_harmful(std::string text) {
  // Most texts contain none of them: DEL, and UTF-8 sequences that begin with C2, CD, D8, E1, E2,
  // EF or F3.
  constexpr std::string_view kBegins = "\x7f\xc2\xcd\xd8\xe1\xe2\xef\xf3";
  std::size_t at = text.find_first_of(kBegins);
  if (at == std::string::npos) return text;
  std::string out = text.substr(0, at);
  for (std::size_t end = at; at < text.size(); at = end) {
    end = at + 1;
    while (end < text.size() && is_utf8_tail(text[end])) ++end;
    const std::string_view character = std::string_view(text).substr(at, end - at);
    const auto first = static_cast<unsigned char>(character.front());
    const char32_t point = first < 0x7f ? U' ' : code_points(character).front();
    if (!is_harmful(point))
      out += character;
    else if (point < 0x10000)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(point));
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((point - 0x10000) >> 10),
                         0xdc00 + (point & 0x3ff));
  }
  return out;
}

}  // namespace

std::string json_text(const Json& value, int indent) {
  return escape_harmful(value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace batchfs

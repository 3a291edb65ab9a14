#include "engine/base/json_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

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

/// Is the value a number that JSON lacks, or does it contain one?
bool has_non_finite(const Json& value) {
  if (value.is_structured()) return std::any_of(value.begin(), value.end(), has_non_finite);
  return value.is_number_float() && !std::isfinite(value.get<double>());
}

/// Turns numbers that JSON lacks into strings, and appends which strings of the document these are
/// to `places`: counted from `strings`, with the keys.
void name_non_finite(Json& value, std::size_t& strings, std::vector<std::size_t>& places) {
  if (value.is_structured()) {
    for (Json& element : value) {
      if (value.is_object()) ++strings;  // the key
      name_non_finite(element, strings, places);
    }
    return;
  }
  if (has_non_finite(value)) {
    const double number = value.get<double>();
    value = std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    places.push_back(strings);
  }
  if (value.is_string()) ++strings;
}

/// The text without the quotes of the strings at `places`, counted from 0; ascending.
std::string without_quotes(const std::string& text, const std::vector<std::size_t>& places) {
  std::string out;
  auto place = places.begin();
  std::size_t strings = 0, copied = 0;
  for (std::size_t at = 0; place != places.end() && at < text.size(); ++at) {
    if (text[at] != '"') continue;
    const std::size_t begin = at++;
    while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    if (strings++ != *place) continue;
    out.append(text, copied, begin - copied).append(text, begin + 1, at - begin - 1);
    copied = at + 1;
    ++place;
  }
  return out.append(text, copied);
}

std::string text_of(const Json& value, int indent, bool bare) {
  const auto dump = [indent](const Json& document) {
    return escape_harmful(document.dump(indent, ' ', false, Json::error_handler_t::replace));
  };
  if (!has_non_finite(value)) return dump(value);
  Json named = value;
  std::size_t strings = 0;
  std::vector<std::size_t> places;
  name_non_finite(named, strings, places);
  return bare ? without_quotes(dump(named), places) : dump(named);
}

}  // namespace

Json with_named_numbers(Json value) {
  std::size_t strings = 0;
  std::vector<std::size_t> places;
  name_non_finite(value, strings, places);
  return value;
}

std::string json_text(const Json& value, int indent) { return text_of(value, indent, false); }

std::string python_json_text(const Json& value, int indent) { return text_of(value, indent, true); }

}  // namespace batchfs

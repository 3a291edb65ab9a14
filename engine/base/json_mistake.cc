#include "engine/base/json_mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "engine/base/utf8.h"

namespace batchfs {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<signed char>(c) < 0;
}

/// A printable part of a line: spaces for control characters, '?' for invalid UTF-8.
std::string shown(std::string_view part) {
  std::string result(part);
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  if (!is_utf8(result))
    for (char& c : result)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return result;
}

/// Walks over the text until the first mistake.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<JsonMistake> run() {
    skip_spaces();
    if (at_end())
      return JsonMistake{0, text_.empty() ? "the file is empty" : "there is nothing but spaces"};
    // A value may stand here; after it, `open_` decides.
    if (!value()) return mistake_;
    while (!open_.empty()) {
      skip_spaces();
      if (!after_value()) return mistake_;
    }
    skip_spaces();
    if (at_end()) return std::nullopt;
    wrong(at_, is_comment() ? comment() : "the JSON has ended before this");
    return mistake_;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char here() const { return at_end() ? '\0' : text_[at_]; }
  bool starts(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool is_comment() const { return starts("//") || starts("/*") || here() == '#'; }

  const char* comment() const {
    return here() == '#' ? "JSON has no comments with '#'" : "JSON has no comments";
  }

  void skip_spaces() {
    while (!at_end() && (here() == ' ' || here() == '\t' || here() == '\n' || here() == '\r'))
      ++at_;
  }

  bool wrong(std::size_t offset, std::string why) {
    mistake_ = JsonMistake{offset, std::move(why)};
    return false;
  }

  /// The text ends inside of an object or a list.
  bool unclosed() {
    const auto [offset, bracket] = open_.back();
    const auto line =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n') + 1;
    return wrong(at_, fmt::format("the '{}' of line {} is not closed", bracket, line));
  }

  /// Reports a token that cannot start the expected value or key, by name.
  bool wrong_start(const char* expected) {
    if (at_end())
      return open_.empty() ? wrong(at_, fmt::format("{} is missing", expected)) : unclosed();
    if (is_comment()) return wrong(at_, comment());
    if (here() == '\'') return wrong(at_, "JSON wants double quotes");
    if (starts("\xe2\x80\x9c") || starts("\xe2\x80\x9d") || starts("\xe2\x80\x98") ||
        starts("\xe2\x80\x99"))
      return wrong(at_, "JSON wants straight double quotes");
    static constexpr std::array<std::array<const char*, 2>, 9> kWords = {
        {{"True", "JSON writes true"},
         {"TRUE", "JSON writes true"},
         {"False", "JSON writes false"},
         {"FALSE", "JSON writes false"},
         {"None", "JSON writes null"},
         {"Null", "JSON writes null"},
         {"NULL", "JSON writes null"},
         {"nan", "JSON has no NaN"},
         {"NaN", "JSON has no NaN"}}};
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    for (const auto& [wrong_word, why] : kWords)
      if (word == wrong_word) return wrong(at_, why);
    if (word == "Infinity" || word == "inf" ||
        (here() == '-' && text_.substr(at_).starts_with("-Infinity")))
      return wrong(at_, "JSON has no Infinity");
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0)
      return wrong(at_, "strings and keys stand in double quotes");
    return wrong(at_, fmt::format("{} is expected here", expected));
  }

  bool string() {
    const std::size_t begin = at_++;
    while (!at_end() && here() != '"') {
      const auto c = static_cast<unsigned char>(here());
      if (c == '\n' || c == '\r') return wrong(begin, "this string is not closed on its line");
      if (c < 0x20)
        return wrong(at_, c == '\t' ? "a tab in a string is written \\t"
                                    : "a control character in a string");
      if (c != '\\') {
        ++at_;
        continue;
      }
      const std::size_t escape = at_++;
      if (at_end()) break;
      if (std::string_view("\"\\/bfnrtu").find(here()) == std::string_view::npos)
        return wrong(escape, "a backslash in a string is written \\\\");
      if (here() == 'u')
        for (int i = 0; i < 4; ++i)
          if (++at_; at_end() || std::isxdigit(static_cast<unsigned char>(here())) == 0)
            return wrong(escape, "\\u needs four hexadecimal digits");
      ++at_;
    }
    if (at_end()) return wrong(begin, "this string is not closed");
    ++at_;
    return true;
  }

  bool digits() {
    const std::size_t begin = at_;
    while (std::isdigit(static_cast<unsigned char>(here())) != 0) ++at_;
    return at_ > begin;
  }

  bool number() {
    const std::size_t begin = at_;
    if (here() == '-') ++at_;
    const std::size_t first = at_;
    bool good = digits() && (text_[first] != '0' || at_ == first + 1);
    if (good && here() == '.') {
      ++at_;
      good = digits();
    }
    if (good && (here() == 'e' || here() == 'E')) {
      ++at_;
      if (here() == '+' || here() == '-') ++at_;
      good = digits();
    }
    if (!good || is_word(here()) || here() == '.') {
      at_ = begin;
      if (starts("-Infinity")) return wrong_start("a value");
      return wrong(begin,
                   "this is not a number in JSON: no leading zero or '+', digits on both sides of "
                   "the point");
    }
    return true;
  }

  /// One value, or the opening of one.
  bool value() {
    skip_spaces();
    const char c = here();
    if (at_end()) return wrong_start("a value");
    if (c == '"') return string();
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '.')
      return number();
    for (const std::string_view word : {"true", "false", "null"})
      if (starts(word) &&
          (at_ + word.size() == text_.size() || !is_word(text_[at_ + word.size()]))) {
        at_ += word.size();
        return true;
      }
    if (c != '{' && c != '[') return wrong_start("a value");
    open_.push_back({at_++, c});
    skip_spaces();
    if (here() == (c == '{' ? '}' : ']')) return close();
    return c == '{' ? key() && value() : value();
  }

  bool key() {
    skip_spaces();
    if (here() != '"' || at_end()) return wrong_start("a key in double quotes");
    const std::size_t begin = at_;
    if (!string()) return false;
    const std::string_view name = text_.substr(begin, std::min(at_ - begin, kMaxQuoted));
    skip_spaces();
    if (here() == ':') {
      ++at_;
      return true;
    }
    if (here() == '=') return wrong(at_, "a ':' stands between a key and its value");
    return at_end() ? unclosed()
                    : wrong(at_, fmt::format("a ':' is missing after the key {}", shown(name)));
  }

  bool close() {
    ++at_;
    open_.pop_back();
    return true;
  }

  /// A comma and the next member, or the end of the object or list.
  bool after_value() {
    const char bracket = open_.back().bracket, closing = bracket == '{' ? '}' : ']';
    if (at_end()) return unclosed();
    if (here() == closing) return close();
    if (here() == '}' || here() == ']')
      return wrong(at_, fmt::format("'{}' closes a '{}'", here(), bracket));
    if (is_comment()) return wrong(at_, comment());
    if (here() != ',') {
      if (here() == ';') return wrong(at_, "values are separated by commas");
      if (here() == ':')
        return wrong(at_, bracket == '[' ? "a list has no keys; write {...}" : "a ':' too many");
      return wrong(at_, "a comma is missing before this");
    }
    const std::size_t comma = at_++;
    skip_spaces();
    if (here() == '}' || here() == ']')
      return wrong(comma, fmt::format("there must be no comma before '{}'", here()));
    if (here() == ',') return wrong(at_, "a comma too many");
    return bracket == '{' ? key() && value() : value();
  }

  struct Open {
    std::size_t offset;
    char bracket;
  };
  static constexpr std::size_t kMaxQuoted = 40;

  const std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
  JsonMistake mistake_{};
};

}  // namespace

std::optional<JsonMistake> find_json_mistake(std::string_view text) { return Scanner(text).run(); }

std::string describe_json_mistake(std::string_view text, const JsonMistake& mistake) {
  constexpr std::size_t kBefore = 40, kAfter = 40;
  // The end of the text is shown as the end of its last line.
  std::size_t offset = std::min(mistake.offset, text.size());
  if (offset == text.size())
    while (offset > 0 && std::isspace(static_cast<unsigned char>(text[offset - 1])) != 0) --offset;
  const std::size_t newline = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  std::size_t end = std::min(text.find('\n', offset), text.size());
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
  const std::size_t column = offset - begin + 1;
  while (begin < offset && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
  const bool cut_before = offset - begin > kBefore, cut_after = end - offset > kAfter;
  if (cut_before) begin = offset - kBefore;
  if (cut_after) end = offset + kAfter;
  // Cut between characters.
  const auto inside = [&](std::size_t i) { return i < text.size() && is_utf8_tail(text[i]); };
  while (begin < offset && cut_before && inside(begin)) ++begin;
  while (end > offset && cut_after && inside(end)) --end;
  return fmt::format("line {}, column {}: {}: `{}{}^{}{}`", line, column, mistake.why,
                     cut_before ? "..." : "", shown(text.substr(begin, offset - begin)),
                     shown(text.substr(offset, end - offset)), cut_after ? "..." : "");
}

}  // namespace batchfs

#include "engine/store/references/json_scanner.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/limits.h"
#include "engine/base/utf8.h"

namespace batchfs::references {

namespace {

Error half_a_pair() {
  return Error(ErrorCode::not_supported, "half of a pair of surrogates, which UTF-8 cannot hold");
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// The position of the next quotation mark or backslash.
std::size_t find_end_of_run(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

}  // namespace

Error JsonScanner::mistake(const std::string& what) const {
  return Error(ErrorCode::invalid_argument,
               fmt::format("not valid JSON at byte {}: {}", position() + 1, what));
}

char JsonScanner::peek() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::take(char c) {
  if (peek() != c || at_ >= text_.size()) return false;
  ++at_;
  return true;
}

void JsonScanner::expect(char c) {
  if (!take(c)) throw mistake(fmt::format("expected '{}'", c));
}

std::uint32_t JsonScanner::hex4() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<std::uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    else
      throw mistake("\\u needs four hexadecimal digits");
    value = value * 16 + digit;
  }
  return value;
}

std::string_view JsonScanner::string(std::string& scratch) {
  expect('"');
  const std::size_t begin = at_;
  at_ = find_end_of_run(text_, at_);
  if (at_ < text_.size() && text_[at_] == '"') return text_.substr(begin, at_++ - begin);
  scratch.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size() && text_[at_] != '"') {
    ++at_;  // of the backslash
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    static constexpr std::string_view kShort = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
      char32_t point = hex4();
      if (point >= 0xd800 && point < 0xdc00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const std::uint32_t low = hex4();
        if (low < 0xdc00 || low > 0xdfff) throw half_a_pair();
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
      } else if (point >= 0xd800 && point <= 0xdfff) {
        throw half_a_pair();
      }
      append_utf8(scratch, point);
    } else if (const std::size_t which = kShort.find(c);
               which != std::string_view::npos && c != 0) {
      scratch += kMeant[which];
    } else {
      throw mistake("an unknown escape");
    }
    const std::size_t run = at_;
    at_ = find_end_of_run(text_, at_);
    scratch.append(text_.substr(run, at_ - run));
  }
  if (at_ >= text_.size()) throw mistake("a string without its end");
  ++at_;
  return scratch;
}

void JsonScanner::skip_string() {
  expect('"');
  for (;;) {
    at_ = find_end_of_run(text_, at_);
    if (at_ >= text_.size()) throw mistake("a string without its end");
    if (text_[at_++] == '"') return;
    ++at_;
    at_ = std::min(at_, text_.size());
  }
}

std::uint64_t JsonScanner::count() {
  peek();
  std::uint64_t value = 0;
  const std::size_t begin = at_;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(text_[at_] - '0'), &value))
      throw mistake("the number is too large");
  const char next = at_ < text_.size() ? text_[at_] : '\0';
  if (at_ == begin || next == '.' || next == 'e' || next == 'E')
    throw mistake("expected a whole number that is not negative");
  return value;
}

void JsonScanner::skip_word() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && std::strchr("\",:[]{} \t\r\n", text_[at_]) == nullptr) ++at_;
  if (at_ == begin) throw mistake("expected a value");
}

std::string_view JsonScanner::value() {
  peek();
  const std::size_t begin = at_;
  std::string open;  // brackets
  do {
    const char c = peek();
    if (c == '"') {
      skip_string();
    } else if (c == '{' || c == '[') {
      if (open.size() == kMaxJsonDepth)
        throw mistake(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
      open += c;
      ++at_;
    } else if (!open.empty() && c == (open.back() == '{' ? '}' : ']')) {
      open.pop_back();
      ++at_;
    } else if (!open.empty() && (c == ',' || c == ':')) {
      ++at_;
    } else {
      skip_word();
    }
  } while (!open.empty());
  return text_.substr(begin, at_ - begin);
}

}  // namespace batchfs::references

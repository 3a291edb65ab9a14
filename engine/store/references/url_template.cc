#include "engine/store/references/url_template.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/base/strings.h"

namespace batchfs::references {

namespace {

using Value = std::variant<std::int64_t, std::string>;

constexpr int kMaxNested = 32;  // parentheses

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string shown_text(std::string_view text) {
  constexpr std::size_t kMost = 120;
  return printable(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

/// Towards minus infinity, whatever the signs.
std::int64_t divide_as_python(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// One expression, between {{ and }}.
class Expression {
 public:
  Expression(std::string_view text, const TemplateNames& names) : text_(text), names_(names) {}

  Value evaluate() {
    Value value = sum(0);
    if (next() != '\0') throw unknown();
    return value;
  }

 private:
  Error unknown() const {
    return Error(ErrorCode::not_supported,
                 fmt::format("'{{{{{}}}}}' needs jinja2, which batchfs does not have: it knows "
                             "names, calls such as f(c='text'), and + - * // % of whole numbers",
                             shown_text(text_)));
  }
  Error wrong(const std::string& why) const {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("'{{{{{}}}}}': {}", shown_text(text_), why));
  }

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view what) {
    next();
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::int64_t number(const Value& value) const {
    if (const auto* found = std::get_if<std::int64_t>(&value)) return *found;
    throw wrong("arithmetic takes whole numbers");
  }

  Value sum(int depth) {
    Value left = product(depth);
    for (;;) {
      const bool plus = take("+"), minus = !plus && take("-");
      if (!plus && !minus) return left;
      const std::int64_t a = number(left), b = number(product(depth));
      std::int64_t result = 0;
      if (plus ? __builtin_add_overflow(a, b, &result) : __builtin_sub_overflow(a, b, &result))
        throw wrong("the number is too large");
      left = result;
    }
  }

  Value product(int depth) {
    Value left = factor(depth);
    for (;;) {
      if (take("**")) throw unknown();
      const bool times = take("*"), over = !times && take("//"),
                 rest = !times && !over && take("%");
      if (!times && !over && !rest) return left;
      const std::int64_t a = number(left), b = number(factor(depth));
      std::int64_t result = 0;
      if (times) {
        if (__builtin_mul_overflow(a, b, &result)) throw wrong("the number is too large");
      } else if (b == 0 || (b == -1 && a == INT64_MIN)) {
        throw wrong("a division by zero");
      } else {
        result = over ? divide_as_python(a, b) : a - divide_as_python(a, b) * b;
      }
      left = result;
    }
  }

  Value factor(int depth) {
    if (depth == kMaxNested) throw unknown();
    if (take("(")) {
      Value value = sum(depth + 1);
      if (!take(")")) throw unknown();
      return value;
    }
    if (take("-")) {
      const std::int64_t value = number(factor(depth + 1));
      if (value == INT64_MIN) throw wrong("the number is too large");
      return -value;
    }
    const char c = next();
    if (is_digit(c)) return literal();
    if (begins_name(c)) return named();
    throw unknown();
  }

  std::int64_t literal() {
    std::int64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        throw wrong("the number is too large");
    return value;
  }

  std::string_view name() {
    next();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Value named() {
    const std::string_view word = name();
    for (const auto& [dimension, value] : names_.numbers)
      if (dimension == word) return value;
    const auto found = names_.texts.find(word);
    const bool is_call = take("(");
    if (found == names_.texts.end()) {
      std::vector<std::string> known;
      for (const auto& [key, text] : names_.texts) known.push_back(key);
      for (const auto& [dimension, value] : names_.numbers) known.push_back(dimension);
      throw wrong(fmt::format("'{}' is neither a template nor a dimension{}", shown_text(word),
                              nearest_of(word, known)));
    }
    const bool has_arguments = found->second.find("{{") != std::string::npos;
    if (!is_call) {
      if (has_arguments)
        throw wrong(fmt::format("the template '{}' takes arguments", shown_text(word)));
      return found->second;
    }
    // Inside, only the arguments have a meaning: jinja2 renders it so, and nothing recurs.
    TemplateNames arguments;
    while (!take(")")) {
      std::string argument(name());
      if (argument.empty() || !take("=")) throw unknown();
      arguments.texts[std::move(argument)] = text();
      if (!take(",") && next() != ')') throw unknown();
    }
    return render(found->second, arguments);
  }

  static std::string nearest_of(std::string_view word, const std::vector<std::string>& known) {
    const auto it = std::find_if(known.begin(), known.end(), [word](const std::string& one) {
      return to_lower(one) == to_lower(std::string(word));
    });
    return it == known.end() ? std::string() : fmt::format(", did you mean '{}'?", *it);
  }

  /// In quotation marks, without escapes.
  std::string text() {
    const char quote = next();
    if (quote != '\'' && quote != '"') throw unknown();
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\') ++at_;
    if (at_ == text_.size() || text_[at_] == '\\') throw unknown();
    return std::string(text_.substr(begin, at_++ - begin));
  }

  const std::string_view text_;
  const TemplateNames& names_;
  std::size_t at_ = 0;
};

}  // namespace

std::string render(std::string_view text, const TemplateNames& names) {
  std::string out;
  const auto add = [&out](std::string_view part) {
    if (out.size() + part.size() > kMaxRendered)
      throw Error(ErrorCode::not_supported,
                  fmt::format("a template makes more than {} bytes of one name", kMaxRendered));
    out += part;
  };
  for (const std::string_view other : {"{%", "{#"})
    if (text.find(other) != std::string_view::npos)
      throw Error(ErrorCode::not_supported,
                  fmt::format("'{}' needs jinja2, which batchfs does not have", shown_text(text)));
  for (std::size_t at = 0;;) {
    const std::size_t open = text.find("{{", at);
    add(text.substr(at, open - at));
    if (open == std::string_view::npos) return out;
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' has {{{{ without }}}}", shown_text(text)));
    const Value value = Expression(text.substr(open + 2, close - open - 2), names).evaluate();
    if (const auto* number = std::get_if<std::int64_t>(&value))
      add(std::to_string(*number));
    else
      add(std::get<std::string>(value));
    at = close + 2;
  }
}

std::uint64_t render_count(std::string_view text, const TemplateNames& names) {
  const std::string rendered = render(text, names);
  std::string_view digits = rendered;
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  const auto number = parse_exact_number(digits);
  if (!number)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' gives '{}', which is not a whole number from 0 on",
                            shown_text(text), shown_text(rendered)));
  return *number;
}

}  // namespace batchfs::references

#include "engine/base/json_repair.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/base/json_limits.h"

namespace batchfs {

namespace {

constexpr std::string_view kReplacement = "\\ufffd";
constexpr std::string_view kBetween = " \t\r\n:,[]{}\"";  // words
constexpr std::size_t kEscape = 6;                        // characters of \udcb0

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The code unit of an escape \uXXXX at `at`; nullopt where there is none.
std::optional<unsigned> unit_at(std::string_view text, std::size_t at) {
  if (at + kEscape > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  unsigned unit = 0;
  for (const char c : text.substr(at + 2, 4)) {
    const int lower = c | 0x20;
    if (is_digit(c))
      unit = unit * 16 + static_cast<unsigned>(c - '0');
    else if (lower >= 'a' && lower <= 'f')
      unit = unit * 16 + static_cast<unsigned>(lower - 'a' + 10);
    else
      return std::nullopt;
  }
  return unit;
}

/// The grammar of RFC 8259, section 6.
bool is_number(std::string_view token) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < token.size() && is_digit(token[at])) ++at;
    return at - begin;
  };
  const auto take = [&](std::string_view any) {
    const bool found = at < token.size() && any.find(token[at]) != std::string_view::npos;
    if (found) ++at;
    return found;
  };
  take("-");
  const bool is_zero = at < token.size() && token[at] == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (is_zero && whole > 1)) return false;
  if (take(".") && digits() == 0) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return at == token.size();
}

class Repairer {
 public:
  Repairer(std::string_view text, const OnRepair& on_repair) : text_(text), on_repair_(on_repair) {}

  std::optional<std::string> run() {
    while (at_ < text_.size()) {
      switch (const char c = text_[at_]) {
        case '"':
          string();
          break;
        case '{':
        case '[':
          path_.emplace_back();
          in_object_.push_back(c == '{');
          expects_key_ = c == '{';
          ++at_;
          break;
        case '}':
        case ']':
          if (!path_.empty()) path_.pop_back();
          if (!in_object_.empty()) in_object_.pop_back();
          expects_key_ = false;
          ++at_;
          break;
        case ',':
          expects_key_ = !in_object_.empty() && in_object_.back();
          ++at_;
          break;
        default:
          if (kBetween.find(c) != std::string_view::npos)
            ++at_;
          else
            word();
      }
    }
    if (out_.empty()) return std::nullopt;
    return out_.append(text_.substr(copied_));
  }

 private:
  void replace(std::size_t begin, std::size_t end, std::string_view with) {
    if (out_.empty()) out_.reserve(text_.size() + text_.size() / 8);
    out_.append(text_.substr(copied_, begin - copied_)).append(with);
    copied_ = end;
  }

  /// The decoded string, with lone surrogates as U+FFFD.
  static std::string meaning(std::string_view quoted) {
    std::string text(quoted);
    for (std::size_t at = 0; (at = next_lone(text, at)) < text.size(); at += kEscape)
      text.replace(at, kEscape, kReplacement);
    const Json json = Json::parse(text, nullptr, false);
    return json.is_string() ? json.get<std::string>() : std::string();
  }

  /// The next escape of one half of a pair from `at` on; else the size.
  static std::size_t next_lone(std::string_view text, std::size_t at) {
    while ((at = text.find('\\', at)) < text.size()) {
      const std::optional<unsigned> unit = unit_at(text, at);
      if (!unit || *unit < 0xd800 || *unit > 0xdfff) {
        at += 2;
        continue;
      }
      const std::optional<unsigned> next = unit_at(text, at + kEscape);
      if (*unit >= 0xdc00 || !next || *next < 0xdc00 || *next > 0xdfff) return at;
      at += 2 * kEscape;
    }
    return text.size();
  }

  void string() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    const std::size_t end = at_ = std::min(at_ + 1, text_.size());
    const std::string_view quoted = text_.substr(begin, end - begin);
    if (expects_key_ && !path_.empty()) path_.back() = meaning(quoted);
    expects_key_ = false;
    bool any = false;
    for (std::size_t lone = 0; (lone = next_lone(quoted, lone)) < quoted.size(); lone += kEscape) {
      replace(begin + lone, begin + lone + kEscape, kReplacement);
      any = true;
    }
    if (any)
      on_repair_({path_, "text that is not Unicode (half of a pair of surrogates)", "U+FFFD"});
  }

  /// A number or a literal.
  void word() {
    const std::size_t begin = at_;
    at_ = begin + 1;
    while (at_ < text_.size() && kBetween.find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string token(text_.substr(begin, at_ - begin));
    if (!is_number(token) || !std::isinf(std::strtod(token.c_str(), nullptr))) return;
    replace(begin, at_, token.front() == '-' ? "-Infinity" : "Infinity");
    on_repair_({path_, "a number beyond float64", "infinity"});
  }

  const std::string_view text_;
  const OnRepair& on_repair_;
  std::size_t at_ = 0, copied_ = 0;
  std::string out_;
  std::vector<std::string> path_;  // of the value to come
  std::vector<bool> in_object_;
  bool expects_key_ = false;
};

}  // namespace

std::optional<std::string> repair_json(std::string_view text, const OnRepair& on_repair) {
  return Repairer(text, on_repair).run();
}

Json parse_python_json(std::string_view text, const std::string& where, std::uint64_t memory,
                       const OnRepair& on_repair) {
  try {
    return parse_json(text, where, {.memory = memory});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    check_json_limits(text, memory, where);  // throws again for texts beyond the limits
    const std::optional<std::string> repaired = repair_json(text, on_repair);
    if (!repaired) throw;
    if (repaired->size() > memory) throw;
    return parse_json(*repaired, where, {.memory = memory - repaired->size()});
  }
}

}  // namespace batchfs

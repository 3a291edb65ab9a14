#include "engine/base/yaml.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <yaml.h>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/limits.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxResult = 16 << 20;
constexpr std::string_view kStringTag = "tag:yaml.org,2002:str";

bool consists_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view kDigits = "0123456789";

/// A number of YAML as one of JSON; empty for other text: "012" is 12, ".5" is 0.5, "+1." is 1.0.
std::string number_of(std::string_view text) {
  std::string result;
  if (text.starts_with('-')) result = "-";
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t exponent_at = text.find_first_of("eE");
  std::string_view mantissa = text.substr(0, exponent_at);
  const std::size_t point = mantissa.find('.');
  std::string_view whole = mantissa.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : mantissa.substr(point + 1);
  if ((!whole.empty() && !consists_of(whole, kDigits)) ||
      (!fraction.empty() && !consists_of(fraction, kDigits)) || (whole.empty() && fraction.empty()))
    return {};
  while (whole.size() > 1 && whole.starts_with('0')) whole.remove_prefix(1);
  result.append(whole.empty() ? "0" : whole);
  if (point != std::string_view::npos) result.append(".").append(fraction.empty() ? "0" : fraction);
  if (exponent_at == std::string_view::npos) return result;
  std::string_view exponent = text.substr(exponent_at + 1);
  if (exponent.starts_with('-')) result += "e-";
  if (exponent.starts_with('-') || exponent.starts_with('+')) exponent.remove_prefix(1);
  if (!consists_of(exponent, kDigits)) return {};
  if (!result.ends_with('-')) result += 'e';
  return result.append(exponent);
}

/// A number of octal or hexadecimal digits, of 64 bits; empty for other text.
std::string number_of_base(std::string_view text) {
  const bool octal = text.starts_with("0o"), hexadecimal = text.starts_with("0x");
  if (!octal && !hexadecimal) return {};
  text.remove_prefix(2);
  if (!consists_of(text, octal ? "01234567" : "0123456789abcdefABCDEF") || text.size() > 16)
    return {};
  return std::to_string(std::stoull(std::string(text), nullptr, octal ? 8 : 16));
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

class YamlConverter {
 public:
  YamlConverter(std::string_view text, const std::string& where) : where_(where) {
    if (yaml_parser_initialize(&parser_) == 0)
      throw Error(ErrorCode::no_memory, "no memory to read YAML", where);
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  YamlConverter(const YamlConverter&) = delete;
  ~YamlConverter() { yaml_parser_delete(&parser_); }

  std::string result() {
    int documents = 0;
    for (;;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) throw syntax_error();
      const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> ends(&event, yaml_event_delete);
      if (event.type == YAML_STREAM_END_EVENT) break;
      if (event.type == YAML_DOCUMENT_START_EVENT && ++documents > 1)
        throw failure(event.start_mark, "a second document begins here; a file holds one");
      add(event);
      if (result_.size() > kMaxResult)
        throw failure(event.start_mark, "what its aliases stand for is larger than 16 MB");
    }
    return documents == 0 ? "null" : std::move(result_);
  }

 private:
  /// A mapping or list that is not at its end yet.
  struct Open {
    bool is_mapping;
    bool key_follows;
    bool is_empty = true;
    std::size_t begin;  // in the result
    std::string anchor;
  };
  using Text = const yaml_char_t*;

  static std::string string_of(Text text) {
    return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
  }
  Error failure(const yaml_mark_t& mark, const std::string& why) const {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("not valid YAML at line {}, column {}: {}", mark.line + 1,
                             mark.column + 1, why),
                 where_);
  }
  Error syntax_error() const {
    if (parser_.error == YAML_MEMORY_ERROR)
      return Error(ErrorCode::no_memory, "no memory to read YAML", where_);
    const std::string why = parser_.problem != nullptr ? parser_.problem : "it cannot be read";
    if (parser_.error == YAML_READER_ERROR)
      return Error(ErrorCode::invalid_argument,
                   fmt::format("not valid YAML at byte {}: {}", parser_.problem_offset, why),
                   where_);
    return failure(parser_.problem_mark, why);
  }

  void add(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        const std::size_t begin =
            begin_value(event.start_mark, true, string_of(scalar.anchor).empty());
        result_ += wants_key() ? quoted(scalar_text(event)) : scalar_json(event);
        return end_value(begin, string_of(scalar.anchor));
      }
      case YAML_SEQUENCE_START_EVENT:
        check_tag(event.start_mark, event.data.sequence_start.tag);
        return open(event.start_mark, false, string_of(event.data.sequence_start.anchor));
      case YAML_MAPPING_START_EVENT:
        check_tag(event.start_mark, event.data.mapping_start.tag);
        return open(event.start_mark, true, string_of(event.data.mapping_start.anchor));
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: {
        const Open ended = std::move(open_.back());
        open_.pop_back();
        result_ += ended.is_mapping ? '}' : ']';
        return end_value(ended.begin, ended.anchor);
      }
      case YAML_ALIAS_EVENT: {
        const std::string name = string_of(event.data.alias.anchor);
        const auto known = anchors_.find(name);
        if (known == anchors_.end())
          throw failure(event.start_mark,
                        fmt::format("the alias '{}' has no anchor that ends before it", name));
        const std::size_t begin = begin_value(event.start_mark, false, true);
        if (known->second.levels + open_.size() > kMaxJsonDepth) throw too_deep(event.start_mark);
        result_ += known->second.json;
        return end_value(begin, {});
      }
      default:
        return;
    }
  }

  bool wants_key() const {
    return !open_.empty() && open_.back().is_mapping && open_.back().key_follows;
  }
  /// Writes the separator before a value. Returns where the value begins.
  std::size_t begin_value(const yaml_mark_t& mark, bool is_scalar, bool is_plain) {
    if (wants_key() && !(is_scalar && is_plain))
      throw failure(mark, "a key is a word or a number, without an anchor");
    if (!open_.empty()) {
      Open& in = open_.back();
      if (!in.is_empty && (!in.is_mapping || in.key_follows)) result_ += ',';
      in.is_empty = false;
    }
    return result_.size();
  }
  void end_value(std::size_t begin, const std::string& anchor) {
    if (!anchor.empty()) {
      Anchored& anchored = anchors_[anchor];
      anchored.json = result_.substr(begin);
      anchored.levels = levels_of(anchored.json);
      kept_ += anchored.json.size();
      if (kept_ > kMaxResult)
        throw Error(ErrorCode::invalid_argument, "its anchors hold more than 16 MB", where_);
    }
    if (open_.empty()) return;
    Open& in = open_.back();
    if (!in.is_mapping) return;
    if (in.key_follows) result_ += ':';
    in.key_follows = !in.key_follows;
  }
  void open(const yaml_mark_t& mark, bool is_mapping, std::string anchor) {
    const std::size_t begin = begin_value(mark, false, anchor.empty());
    result_ += is_mapping ? '{' : '[';
    open_.push_back({is_mapping, is_mapping, true, begin, std::move(anchor)});
    if (open_.size() > kMaxJsonDepth) throw too_deep(mark);
  }
  Error too_deep(const yaml_mark_t& mark) const {
    return failure(mark, fmt::format("more than {} levels", kMaxJsonDepth));
  }
  /// Brackets open at one place, at most.
  static std::size_t levels_of(std::string_view json) {
    std::size_t now = 0, most = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const char c = json[i];
      if (in_string && c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = !in_string;
      } else if (!in_string && (c == '[' || c == '{')) {
        most = std::max(most, ++now);
      } else if (!in_string && (c == ']' || c == '}')) {
        --now;
      }
    }
    return most;
  }

  static std::string scalar_text(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    return std::string(reinterpret_cast<const char*>(scalar.value), scalar.length);
  }
  static std::string quoted(const std::string& text) { return Json(text).dump(); }

  void check_tag(const yaml_mark_t& mark, Text tag) const {
    if (tag != nullptr && string_of(tag) != "!")
      throw failure(mark,
                    fmt::format("the tag '{}' has no meaning here; leave it out", string_of(tag)));
  }

  std::string scalar_json(const yaml_event_t& event) const {
    const auto& scalar = event.data.scalar;
    const std::string text = scalar_text(event);
    const bool is_string = scalar.tag != nullptr && string_of(scalar.tag) == kStringTag;
    if (!is_string) check_tag(event.start_mark, scalar.tag);
    if (is_string || scalar.tag != nullptr || scalar.style != YAML_PLAIN_SCALAR_STYLE)
      return quoted(text);
    if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return "null";
    if (is_one_of(text, {"true", "True", "TRUE"})) return "true";
    if (is_one_of(text, {"false", "False", "FALSE"})) return "false";
    std::string_view unsigned_text = text;
    if (text.starts_with('-') || text.starts_with('+')) unsigned_text.remove_prefix(1);
    if (is_one_of(unsigned_text, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"}))
      throw failure(event.start_mark, fmt::format("'{}' is not a number of JSON", text));
    if (text.size() <= kMaxJsonNumber) {
      if (const std::string number = number_of_base(text); !number.empty()) return number;
      if (const std::string number = number_of(text); !number.empty()) return number;
    }
    return quoted(text);
  }

  struct Anchored {
    std::string json;
    std::size_t levels = 0;
  };

  const std::string& where_;
  yaml_parser_t parser_;
  std::string result_;
  std::vector<Open> open_;  // outermost first
  std::map<std::string, Anchored> anchors_;
  std::size_t kept_ = 0;  // bytes of all anchors that there were
};

}  // namespace

std::string json_of_yaml(std::string_view text, const std::string& where) {
  return YamlConverter(text, where).result();
}

}  // namespace batchfs

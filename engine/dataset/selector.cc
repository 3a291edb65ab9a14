#include "engine/dataset/selector.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/key_hints.h"
#include "engine/base/strings.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

bool looks_like_label(const std::string& text) {
  return text.empty() || text.find(':') == std::string::npos || parse_date_text(text);
}

/// Splits "from:to" at the colon that leaves two labels; times have colons of their own.
std::optional<std::pair<std::string, std::string>> split_range(const std::string& text) {
  std::optional<std::pair<std::string, std::string>> found;
  if (parse_date_text(text)) return std::nullopt;
  for (std::size_t i = text.find(':'); i != std::string::npos; i = text.find(':', i + 1)) {
    const std::string left = text.substr(0, i), right = text.substr(i + 1);
    if (!looks_like_label(left) || !looks_like_label(right)) continue;
    const bool dates = parse_date_text(left) && parse_date_text(right);
    if (!found || dates) found = {left, right};
    if (dates) break;
  }
  return found;
}

std::string scalar_text(const JsonRef& json) {
  if (json.is_string()) return json.string();
  // -9223372036854775809 has also become this number, which is not a label.
  if (json.value().is_number_float() && json.number() == -0x1p63)
    throw json.error("the number is less than an integer of 64 bits; write a text, \"-1e19\"");
  if (json.is_number() || json.value().is_boolean()) return json_text(json.value(), -1);
  throw json.error("expected a label or a position like \"#3\"");
}

/// Labels are numbers where they look like numbers.
Json label_as_json(const std::string& text) {
  const Json number = Json::parse(text, nullptr, false);
  return number.is_number() ? number : Json(text);
}

/// How a range is written in a view.
std::string range_in_view(const std::string& from, const std::string& to, bool wrap) {
  return fmt::format("{{\"from\": {}, \"to\": {}{}}}", json_text(label_as_json(from), -1),
                     json_text(label_as_json(to), -1), wrap ? ", \"wrap\": true" : "");
}

/// Keys of slices in other programs.
constexpr KeyHint kRangeHints[] = {
    {"start", "the first label of a range is \"from\""},
    {"begin", "the first label of a range is \"from\""},
    {"min", "the first label of a range is \"from\""},
    {"stop", "the last label of a range is \"to\", included"},
    {"end", "the last label of a range is \"to\", included"},
    {"max", "the last label of a range is \"to\", included"},
    {"until", "the last label of a range is \"to\", included"},
    {"stride",
     "every second position of a range is \"step\": 2; samples are thinned out with "
     "\"stride\" in \"window\""},
    {"method", "the label next to a number is {\"nearest\": 51.3}"},
    {"months", "a list of months is \"month\": [6, 7, 8]"},
    {"years", "a list of years is \"year\": [2000, 2010]"},
    {"days", "a list of days is \"day\": [1, 15]"},
    {"hours", "a list of hours is \"hour\": [0, 12]"},
    {"seasons", "a list of seasons is \"season\": [\"DJF\", \"JJA\"]"},
    {"dayofweek", "days of the week are \"weekday\", 0 (Monday) to 6"},
    {"slice", "a range is {\"from\": A, \"to\": B}"},
    {"values", "a list of labels is written as [500, 850]"},
    {"cyclic", "a range that goes over the end has \"wrap\": true"},
    {"periodic", "a range that goes over the end has \"wrap\": true"}};

constexpr std::int64_t kMaxStep = INT64_C(1) << 40;

/// Words after a label or a range on the command line: ":wrap", ":step=2", ":nearest",
/// ":tolerance=0.5". Taken off the end of `text`.
struct Words {
  bool wrap = false, nearest = false;
  std::optional<std::string> step, tolerance;
};
Words take_words(std::string& text) {
  Words words;
  for (;;) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return words;
    const std::string word = text.substr(colon + 1);
    if (word == "wrap")
      words.wrap = true;
    else if (word == "nearest")
      words.nearest = true;
    else if (word.starts_with("step="))
      words.step = word.substr(5);
    else if (word.starts_with("tolerance="))
      words.tolerance = word.substr(10);
    else
      return words;
    text.resize(colon);
  }
}

SelectorPart range_part(std::string from, std::string to) {
  SelectorPart part;
  part.form = SelectorPart::Form::range;
  part.with_wrap =
      fmt::format("{}:{}:wrap (in a view {})", from, to, range_in_view(from, to, true));
  if (!from.empty()) part.from = std::move(from);
  if (!to.empty()) part.to = std::move(to);
  return part;
}

std::int64_t step_of(const std::string& text, const std::string& where) {
  std::int64_t step = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (failed != std::errc() || end != text.data() + text.size() || step < 1 || step > kMaxStep)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the step '{}' is not a whole number from 1 on", text), where);
  return step;
}

/// Parses the text between two commas. Words of a label without range are left for the caller,
/// which sees the whole list.
SelectorPart parse_part(std::string text, const std::string& where, Words& last) {
  const std::string typed = text;
  const auto fail = [&](std::string_view why) {
    return Error(ErrorCode::invalid_argument, fmt::format("'{}': {}", typed, why), where);
  };
  const auto whole = split_range(text);
  Words words = take_words(text);
  auto range = split_range(text);
  // In a coordinate of texts "wrap" may be a label: a range needs two ends before a word.
  if (!range && words.wrap && whole) {
    range = whole;
    words = {};
  }
  if (range) {
    if (words.nearest || words.tolerance)
      throw fail("\"nearest\" and \"tolerance\" are for labels, not for ranges");
    SelectorPart part = range_part(range->first, range->second);
    part.wrap = words.wrap;
    if (words.step) part.step = step_of(*words.step, where);
    return part;
  }
  if (words.wrap || words.step) throw fail("\"wrap\" and \"step\" are for ranges, as in 350:30");
  if (words.tolerance && !words.nearest)
    throw fail("\"tolerance\" goes with \"nearest\", as in 51.3:nearest:tolerance=0.2");
  if (text.empty()) throw fail("has an empty label");
  SelectorPart part;
  part.value = text;
  last = words;
  return part;
}

SelectorPart parse_range(const JsonRef& json) {
  allow_only(json,
             {"from", "to", "wrap", "step", "year", "month", "day", "hour", "minute", "weekday",
              "dayofyear", "season"},
             kRangeHints);
  SelectorPart part;
  part.form = SelectorPart::Form::range;
  if (const auto from = json.find("from"); from && !from->is_null()) part.from = scalar_text(*from);
  if (const auto to = json.find("to"); to && !to->is_null()) part.to = scalar_text(*to);
  if (const auto wrap = json.find("wrap")) part.wrap = wrap->boolean();
  if (const auto step = json.find("step")) part.step = step->integer(1, kMaxStep);
  for (const auto& [key, value] : json.members())
    if (const auto field = parse_calendar_field(key)) part.fields.add(*field, value);
  if (part.from && part.to) part.with_wrap = range_in_view(*part.from, *part.to, true);
  return part;
}

std::vector<SelectorPart> parse_nearest(const JsonRef& json) {
  allow_only(json, {"nearest", "tolerance"}, {});
  SelectorPart part;
  part.form = SelectorPart::Form::nearest;
  if (const auto tolerance = json.find("tolerance")) part.tolerance = scalar_text(*tolerance);
  const JsonRef labels = json.at("nearest");
  std::vector<SelectorPart> parts;
  for (const JsonRef& label :
       labels.is_array() ? labels.elements() : std::vector<JsonRef>{labels}) {
    part.value = scalar_text(label);
    parts.push_back(part);
  }
  if (parts.empty()) throw labels.error("the list is empty");
  return parts;
}

void add_parts(const JsonRef& json, Selector& selector) {
  if (json.is_object() && json.find("nearest")) {
    for (SelectorPart& part : parse_nearest(json)) selector.parts.push_back(std::move(part));
  } else if (json.is_object()) {
    selector.parts.push_back(parse_range(json));
  } else {
    selector.parts.emplace_back().value = scalar_text(json);
  }
}

}  // namespace

Selector parse_selector(const std::string& text, const std::string& where) {
  Selector selector;
  selector.where = where;
  if (text.empty()) throw Error(ErrorCode::invalid_argument, "the selection is empty", where);
  const std::vector<std::string> parts = split(text, ',');
  selector.is_list = parts.size() > 1;
  bool any_range = false;
  Words last;
  for (const std::string& part : parts) {
    if (part.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' has an empty label", text), where);
    if (last.nearest)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("'{}': \"nearest\" holds for the whole list and stands at its end", text),
          where);
    selector.parts.push_back(parse_part(part, where, last));
    any_range = any_range || selector.parts.back().form == SelectorPart::Form::range;
  }
  if (!last.nearest) return selector;
  if (any_range)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': \"nearest\" is for labels, not for ranges", text), where);
  for (SelectorPart& part : selector.parts) {
    part.form = SelectorPart::Form::nearest;
    part.tolerance = last.tolerance;
  }
  return selector;
}

Selector parse_selector(const JsonRef& json) {
  Selector selector;
  selector.where = json.path();
  if (json.is_array()) {
    selector.is_list = true;
    const std::size_t count = json.value().size();
    selector.parts.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      add_parts(JsonRef(json.value()[i], fmt::format("{}[{}]", json.path(), i)), selector);
    if (selector.parts.empty()) throw json.error("the list is empty");
  } else {
    add_parts(json, selector);
    if (json.is_object() && json.find("nearest")) selector.is_list = json.at("nearest").is_array();
  }
  return selector;
}

std::string meant_range(const std::string& text) {
  const auto range = split_range(text);
  if (!range || range->first.empty() || range->second.empty()) return "";
  return fmt::format("; a range is {}", range_in_view(range->first, range->second, false));
}

}  // namespace batchfs

#include "engine/dataset/selector.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/json_text.h"
#include "engine/base/key_hints.h"
#include "engine/base/strings.h"
#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

bool looks_like_label(const std::string& text) {
  return text.empty() || text.find(':') == std::string::npos || parse_date(text);
}

/// Splits "from:to" at the colon that leaves two labels; times have colons of their own.
std::optional<std::pair<std::string, std::string>> split_range(const std::string& text) {
  std::optional<std::pair<std::string, std::string>> found;
  if (parse_date(text)) return std::nullopt;
  for (std::size_t i = text.find(':'); i != std::string::npos; i = text.find(':', i + 1)) {
    const std::string left = text.substr(0, i), right = text.substr(i + 1);
    if (!looks_like_label(left) || !looks_like_label(right)) continue;
    const bool dates = parse_date(left) && parse_date(right);
    if (!found || dates) found = {left, right};
    if (dates) break;
  }
  return found;
}

std::string scalar_text(const JsonRef& json) {
  if (json.is_string()) return json.string();
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
    {"step", "a selection has no step; thin out samples with \"stride\" in \"window\""},
    {"stride", "a selection has no stride; thin out samples with \"stride\" in \"window\""},
    {"slice", "a range is {\"from\": A, \"to\": B}"},
    {"values", "a list of labels is written as [500, 850]"},
    {"cyclic", "a range that goes over the end has \"wrap\": true"},
    {"periodic", "a range that goes over the end has \"wrap\": true"}};

}  // namespace

Selector parse_selector(const std::string& text, const std::string& where) {
  Selector selector;
  selector.where = where;
  if (text.empty()) throw Error(ErrorCode::invalid_argument, "the selection is empty", where);
  constexpr std::string_view kWrap = ":wrap";
  std::optional<std::pair<std::string, std::string>> range;
  if (text.ends_with(kWrap)) range = split_range(text.substr(0, text.size() - kWrap.size()));
  selector.wrap = range.has_value();
  if (!range) range = split_range(text);
  if (range) {
    selector.form = Selector::Form::range;
    selector.with_wrap = fmt::format("{}:{}:wrap (in a view {})", range->first, range->second,
                                     range_in_view(range->first, range->second, true));
    if (!range->first.empty()) selector.from = range->first;
    if (!range->second.empty()) selector.to = range->second;
    return selector;
  }
  selector.values = split(text, ',');
  for (const std::string& value : selector.values)
    if (value.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' has an empty label", text), where);
  selector.form = selector.values.size() == 1 ? Selector::Form::one : Selector::Form::list;
  return selector;
}

Selector parse_selector(const JsonRef& json) {
  Selector selector;
  selector.where = json.path();
  if (json.is_object()) {
    allow_only(json, {"from", "to", "wrap"}, kRangeHints);
    selector.form = Selector::Form::range;
    if (const auto from = json.find("from"); from && !from->is_null())
      selector.from = scalar_text(*from);
    if (const auto to = json.find("to"); to && !to->is_null()) selector.to = scalar_text(*to);
    if (const auto wrap = json.find("wrap")) selector.wrap = wrap->boolean();
    if (selector.from && selector.to)
      selector.with_wrap = range_in_view(*selector.from, *selector.to, true);
  } else if (json.is_array()) {
    selector.form = Selector::Form::list;
    for (const JsonRef& element : json.elements()) selector.values.push_back(scalar_text(element));
    if (selector.values.empty()) throw json.error("the list is empty");
  } else {
    selector.values = {scalar_text(json)};
  }
  return selector;
}

std::string meant_range(const std::string& text) {
  const auto range = split_range(text);
  if (!range || range->first.empty() || range->second.empty()) return "";
  return fmt::format("; a range is {}", range_in_view(range->first, range->second, false));
}

}  // namespace batchfs

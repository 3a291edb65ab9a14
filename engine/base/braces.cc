#include "engine/base/braces.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/strings.h"

namespace batchfs {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  constexpr std::size_t kMaxDigits = 15;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || text.size() > kMaxDigits || error != std::errc() ||
      end != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// Digits with a leading zero: all numbers of the range then have this width.
bool is_padded(std::string_view text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  return text.size() > sign + 1 && text[sign] == '0';
}

/// The expansion of the text between braces; empty: neither a range nor a list.
std::vector<std::string> values_of(std::string_view inside, std::size_t most) {
  std::vector<std::string> values;
  const auto add = [&](std::string value) {
    if (values.size() == most)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{{{}}}' stands for more than {} texts", inside, most));
    values.push_back(std::move(value));
  };
  if (inside.find(',') != std::string_view::npos) {
    for (std::string& value : split(inside, ',')) add(std::move(value));
    return values;
  }
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) return values;
  const std::string_view first = inside.substr(0, dots), rest = inside.substr(dots + 2);
  const std::size_t more = rest.find("..");
  const std::string_view last = rest.substr(0, more);
  const auto from = whole_number(first), to = whole_number(last);
  const auto step = more == std::string_view::npos ? 1 : whole_number(rest.substr(more + 2));
  if (!from || !to || !step || *step == 0) return values;
  const std::size_t width =
      is_padded(first) || is_padded(last) ? std::max(first.size(), last.size()) : 0;
  const std::int64_t by = *from <= *to ? std::abs(*step) : -std::abs(*step);
  for (std::int64_t number = *from; by > 0 ? number <= *to : number >= *to; number += by)
    add(fmt::format("{:0{}d}", number, width));
  return values;
}

}  // namespace

std::vector<ExpandedText> expand_braces(std::string_view text, std::size_t most) {
  std::vector<ExpandedText> all{{"", ""}};
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    const std::size_t close = text.find('}', open == std::string_view::npos ? 0 : open);
    std::vector<std::string> values;
    if (open != std::string_view::npos && close != std::string_view::npos)
      values = values_of(text.substr(open + 1, close - open - 1), most);
    const std::size_t end =
        values.empty() ? (open == std::string_view::npos ? text.size() : open + 1) : close + 1;
    const std::string_view plain = text.substr(0, values.empty() ? end : open);
    if (values.empty()) values.emplace_back();
    const bool replaces = plain.size() != end;
    if (all.size() * values.size() > most)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("its braces stand for more than {} texts", most));
    std::vector<ExpandedText> longer;
    for (const ExpandedText& before : all)
      for (const std::string& value : values)
        longer.push_back({before.text + std::string(plain) + value,
                          before.key + (replaces && !before.key.empty() ? "-" : "") + value});
    all = std::move(longer);
    text.remove_prefix(end);
  }
  return all;
}

}  // namespace batchfs

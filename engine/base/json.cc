#include "engine/base/json.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/json_builder.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_mistake.h"

namespace batchfs {

namespace {

/// Longer names are not typed by hand, and comparing two takes the product of their lengths.
constexpr std::size_t kMaxCompared = 256;

/// A text in which the bare tokens NaN, Infinity and -Infinity are strings, and which of its strings
/// they are, by number.
struct QuotedTokens {
  std::string text;
  std::vector<std::uint32_t> numbers;
};

/// nullopt where there is no such token.
std::optional<QuotedTokens> quote_nan_tokens(std::string_view text) {
  static constexpr std::string_view kTokens[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  std::vector<std::uint32_t> numbers;
  std::uint32_t strings = 0;
  std::size_t copied = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
      continue;
    }
    if (c == '"') {
      in_string = true;
      ++strings;
      continue;
    }
    if (c != 'N' && c != 'I' && c != '-') continue;
    for (std::string_view token : kTokens) {
      if (text.substr(i, token.size()) != token) continue;
      if (copied == 0) out.reserve(text.size() + text.size() * 2 / 3 + 2);  // most for "NaN"
      out.append(text.substr(copied, i - copied)).append("\"").append(token).append("\"");
      numbers.push_back(strings++);
      i += token.size() - 1;
      copied = i + 1;
      break;
    }
  }
  if (copied == 0) return std::nullopt;
  return QuotedTokens{std::move(out.append(text.substr(copied))), std::move(numbers)};
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where, JsonOptions options) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  const JsonShape shape = check_json_limits(text, options.memory, where);
  std::optional<QuotedTokens> quoted;
  if (options.allow_nan) quoted = quote_nan_tokens(text);
  if (quoted) text = quoted->text;
  BuiltJson built;
  try {
    built = build_json(text, shape, quoted ? quoted->numbers : std::vector<std::uint32_t>());
  } catch (const Json::parse_error& error) {
    if (const auto mistake = find_json_mistake(text))
      throw Error(ErrorCode::invalid_argument,
                  "not valid JSON at " + describe_json_mistake(text, *mistake), where);
    throw Error(ErrorCode::invalid_argument,
                "not valid JSON at " + line_and_column(text, error.byte), where);
  } catch (const Json::exception&) {
    throw Error(ErrorCode::invalid_argument, "not valid JSON: a number is out of range", where);
  }
  if (options.unique_keys && built.duplicate)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the key '{}' is given twice", *built.duplicate), where);
  return std::move(built.json);
}

void append_member(Json& object, std::string key, Json value) {
  Json::object_t::Container& members = object.get_ref<Json::object_t&>();
  members.emplace_back(std::move(key), std::move(value));
}

Error JsonRef::error(const std::string& why, ErrorCode code) const {
  return Error(code, path_.empty() ? why : path_ + ": " + why);
}

JsonRef JsonRef::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  throw error(fmt::format("the key '{}' is missing", key));
}

std::optional<JsonRef> JsonRef::find(std::string_view key) const {
  if (!value_->is_object()) throw error("expected an object");
  const auto it = value_->find(std::string(key));
  if (it == value_->end()) return std::nullopt;
  return JsonRef(*it, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

std::vector<std::pair<std::string, JsonRef>> JsonRef::members() const {
  if (!value_->is_object()) throw error("expected an object");
  std::vector<std::pair<std::string, JsonRef>> result;
  for (const auto& [key, value] : value_->items())
    result.emplace_back(key, JsonRef(value, path_.empty() ? key : path_ + "." + key));
  return result;
}

std::vector<JsonRef> JsonRef::elements() const {
  if (!value_->is_array()) throw error("expected a list");
  std::vector<JsonRef> result;
  for (std::size_t i = 0; i < value_->size(); ++i)
    result.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  return result;
}

std::string JsonRef::string() const {
  if (!value_->is_string()) throw error("expected a string");
  return value_->get<std::string>();
}

bool JsonRef::boolean() const {
  if (!value_->is_boolean()) throw error("expected true or false");
  return value_->get<bool>();
}

double JsonRef::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>()))
    throw error("expected a number");
  return value_->get<double>();
}

std::int64_t JsonRef::integer(std::int64_t low, std::int64_t high) const {
  std::int64_t result = 0;
  if (value_->is_number_unsigned()) {
    const auto big = value_->get<std::uint64_t>();
    if (big > static_cast<std::uint64_t>(INT64_MAX)) throw error("the number is too large");
    result = static_cast<std::int64_t>(big);
  } else if (value_->is_number_integer()) {
    result = value_->get<std::int64_t>();
  } else if (value_->is_number_float()) {
    const double real = value_->get<double>();
    if (std::floor(real) != real || std::fabs(real) > 9.0e15)
      throw error("expected a whole number");
    result = static_cast<std::int64_t>(real);
  } else {
    throw error("expected a whole number");
  }
  if (result < low) throw error(fmt::format("{} is too small, the least is {}", result, low));
  if (result > high) throw error(fmt::format("{} is too large, the most is {}", result, high));
  return result;
}

std::vector<std::string> JsonRef::strings() const {
  std::vector<std::string> result;
  for (const JsonRef& element : elements()) result.push_back(element.string());
  return result;
}

void JsonRef::allow_only(std::initializer_list<std::string_view> known) const {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [key, value] : members())
    if (std::find(names.begin(), names.end(), key) == names.end())
      throw error(fmt::format("unknown key '{}'{}", key, did_you_mean(key, names)));
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  // Levenshtein distance in which two letters that change places are one step: three rows.
  std::string best;
  if (name.size() > kMaxCompared) return best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxCompared) continue;
    std::vector<std::size_t> earlier(candidate.size() + 1), previous(candidate.size() + 1),
        row(candidate.size() + 1);
    for (std::size_t j = 0; j <= candidate.size(); ++j) previous[j] = j;
    for (std::size_t i = 1; i <= name.size(); ++i) {
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const auto same = [&](std::size_t a, std::size_t b) {
          return std::tolower(static_cast<unsigned char>(name[a])) ==
                 std::tolower(static_cast<unsigned char>(candidate[b]));
        };
        row[j] = std::min(
            {previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
        if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
          row[j] = std::min(row[j], earlier[j - 2] + 1);
      }
      std::swap(earlier, previous);
      std::swap(previous, row);
    }
    const bool has_something_in_common = previous.back() < std::max(name.size(), candidate.size());
    if (previous.back() < best_distance && has_something_in_common) {
      best_distance = previous.back();
      best = candidate;
    }
  }
  constexpr std::size_t kLeastPart = 4;  // letters; fewer are part of too many names
  if (!best.empty() || name.size() < kLeastPart) return best;
  for (const std::string& candidate : candidates)
    if (candidate.find(name) != std::string::npos &&
        (best.empty() || candidate.size() < best.size()))
      best = candidate;
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string best = nearest(name, candidates);
  return best.empty() ? std::string() : fmt::format(", did you mean '{}'?", best);
}

std::string nearest_or_all(std::string_view name, std::vector<std::string> candidates) {
  constexpr std::size_t kMaxNamed = 8;
  std::string near = did_you_mean(name, candidates);
  if (!near.empty() || candidates.empty()) return near;
  if (candidates.size() > kMaxNamed) {
    candidates.resize(kMaxNamed);
    candidates.emplace_back("...");
  }
  return fmt::format("; there {} {}", candidates.size() == 1 ? "is" : "are",
                     fmt::join(candidates, ", "));
}

}  // namespace batchfs

#include "engine/view/sources_spec.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "engine/base/braces.h"
#include "engine/base/strings.h"
#include "engine/dataset/label_number.h"
#include "engine/view/samples/duration.h"

namespace batchfs {

namespace {

JoinRule::Pick parse_pick(const JsonRef& json) {
  const std::string text = json.string();
  if (text == "exact") return JoinRule::Pick::exact;
  if (text == "nearest") return JoinRule::Pick::nearest;
  if (text == "last") return JoinRule::Pick::last;
  if (text == "next") return JoinRule::Pick::next;
  throw json.error(fmt::format("'{}' is none of exact, nearest, last, next{}", text,
                               did_you_mean(text, {"exact", "nearest", "last", "next"})));
}

void parse_tolerance(const JsonRef& json, JoinRule& rule) {
  if (json.is_string()) {
    const Duration duration = read_duration(json);
    if (duration.months != 0)
      throw json.error(
          fmt::format("'{}' has no fixed length; write days, as \"31d\"", json.string()));
    if (duration.nanoseconds < 0)
      throw json.error(fmt::format("'{}' is less than 0", json.string()));
    rule.duration = duration.nanoseconds;
    return;
  }
  static_cast<void>(json.number());  // throws for another type
  rule.distance = label_number(json.value());
  if (!(*rule.distance >= 0) || !std::isfinite(*rule.distance))
    throw json.error(fmt::format("{} is not a distance: it is 0 or more", json.value().dump()));
}

/// 4: cells of a finer grid for each of the first source; "1/4": of a coarser one.
void parse_ratio(const JsonRef& json, JoinRule& rule) {
  constexpr std::int64_t kMaxRatio = 4096;
  if (json.is_string() && json.string().starts_with("1/")) {
    const auto number = parse_exact_number(std::string_view(json.string()).substr(2));
    if (number && *number >= 2 && *number <= static_cast<std::uint64_t>(kMaxRatio)) {
      rule.coarser = static_cast<std::int64_t>(*number);
      return;
    }
  }
  if (!json.is_number() || json.number() < 2)
    throw json.error(
        "expected a whole number from 2 on, cells of a finer grid for each of the first source, "
        "or a text as \"1/4\": a coarser grid, whose cells are repeated");
  rule.ratio = json.integer(2, kMaxRatio);
}

JoinedSource::Join parse_join(const std::string& dim, const JsonRef& json) {
  JoinedSource::Join join{dim, dim, json.path(), {}};
  if (!json.is_object()) {
    join.rule.pick = parse_pick(json);
    return join;
  }
  json.allow_only({"pick", "tolerance", "missing", "as", "ratio", "period"});
  if (const auto ratio = json.find("ratio")) {
    for (const char* key : {"pick", "tolerance"})
      if (const auto other = json.find(key))
        throw other->error("it does not go with \"ratio\", whose grids must nest");
    parse_ratio(*ratio, join.rule);
  }
  if (const auto period = json.find("period")) {
    const double value = period->number();
    if (!(value > 0 && value <= 0x1p53))
      throw period->error(
          fmt::format("{} is not a period: 360 is that of longitudes", period->value().dump()));
    join.rule.period = value;
  }
  if (const auto pick = json.find("pick")) join.rule.pick = parse_pick(*pick);
  if (const auto tolerance = json.find("tolerance")) parse_tolerance(*tolerance, join.rule);
  if (join.rule.pick == JoinRule::Pick::exact && join.rule.duration)
    throw json.at("tolerance")
        .error("times are equal or not; take \"pick\": \"nearest\" with a tolerance");
  if (const auto missing = json.find("missing")) {
    const std::string text = missing->string();
    if (text != "drop" && text != "pad")
      throw missing->error(
          fmt::format("'{}' is none of drop, pad{}", text, did_you_mean(text, {"drop", "pad"})));
    join.rule.pads = text == "pad";
  }
  if (const auto as = json.find("as")) join.as = as->string();
  return join;
}

const std::string& store_name(const JsonRef& json, const std::string& name) {
  if (!is_source_name(name))
    throw json.error(fmt::format(
        "'{}' is not a name of a store: a view names stores as --store NAME=URL does, not by URL",
        name));
  return name;
}

/// A dimension, or a new one: {"dim": "member", "labels": [...]}, or {"member": "new"}.
void parse_concat(const JsonRef& json, ConcatRule& rule) {
  if (json.is_string()) {
    rule.dim = json.string();
    return;
  }
  if (!json.is_object())
    throw json.error(
        "expected the dimension along which the stores lie one behind the other, \"time\", or "
        "{\"dim\": \"member\"}, a new one");
  rule.is_new = true;
  const auto members = json.members();
  const bool is_short = members.size() == 1 && members[0].first != "dim" &&
                        members[0].second.is_string() && members[0].second.string() == "new";
  if (!is_short) json.allow_only({"dim", "labels"});
  const JsonRef dim = is_short ? members[0].second : json.at("dim");
  rule.dim = is_short ? members[0].first : dim.string();
  if (!is_source_name(*rule.dim))
    throw dim.error(fmt::format(
        "'{}' cannot be a dimension's name: it has letters, digits, '_', '-' and '.'", *rule.dim));
  const auto labels = json.find("labels");
  if (!labels) return;
  constexpr double kMaxWhole = 0x1p53;
  std::set<Json> known;
  for (const JsonRef& label : labels->elements()) {
    const Json& value = label.value();
    if (!value.is_string() && !value.is_number()) throw label.error("expected a number or a text");
    if (value.is_number() && !(std::fabs(label_number(value)) <= kMaxWhole))
      throw label.error(fmt::format("{} is too large", value.dump()));
    if (value.is_string() && (value.get_ref<const std::string&>().empty() ||
                              value.get_ref<const std::string&>().size() > 256))
      throw label.error("a text has 1 to 256 bytes");
    if (!rule.labels.empty() && rule.labels.front().is_string() != value.is_string())
      throw label.error("labels are all numbers or all texts");
    if (!known.insert(value).second)
      throw label.error(fmt::format("{} is given twice", value.dump()));
    rule.labels.push_back(value);
  }
  if (rule.labels.empty()) throw labels->error("expected a label for each store");
}

/// Concatenated stores.
void parse_stores(const JsonRef& json, SourceSpec& source) {
  constexpr std::size_t kMaxStores = 4096;
  source.concat.path = json.path();
  if (const auto stores = json.find("stores")) {
    if (const auto store = json.find("store"))
      throw store->error("give \"store\" or \"stores\", not both");
    if (stores->is_string())
      throw stores->error(fmt::format("expected a list of stores; one store is \"store\": \"{}\"",
                                      stores->string()));
    for (const std::string& name : stores->strings()) {
      for (const auto& [each, key] : expand_braces(name, kMaxStores)) {
        if (std::find(source.stores.begin(), source.stores.end(), each) != source.stores.end())
          throw stores->error(fmt::format("'{}' is given twice", each));
        if (source.stores.size() == kMaxStores)
          throw stores->error(fmt::format("more than {} stores", kMaxStores));
        source.stores.push_back(store_name(*stores, each));
        source.keys.push_back(key.empty() ? each : key);
      }
    }
    if (source.stores.empty()) throw stores->error("name at least one store");
  }
  if (const auto concat = json.find("concat")) parse_concat(*concat, source.concat);
  if (const auto prefer = json.find("prefer")) {
    if (source.concat.is_new)
      throw prefer->error("members along a new dimension have no label in common");
    const std::string text = prefer->string();
    if (text != "first" && text != "last")
      throw prefer->error(fmt::format("'{}' is none of first, last{}", text,
                                      did_you_mean(text, {"first", "last"})));
    source.concat.prefer = text == "first" ? ConcatRule::Prefer::first : ConcatRule::Prefer::last;
  }
}

SourceSpec parse_source(const std::string& name, const JsonRef& json) {
  if (!is_source_name(name))
    throw json.error(fmt::format(
        "'{}' cannot be a source's name: it has letters, digits, '_', '-' and '.'", name));
  json.allow_only({"store", "stores", "concat", "prefer", "group", "join"});
  SourceSpec source{name, json.path(), {}, {}, {}, {}, {}, {}};
  if (const auto store = json.find("store")) source.store = store_name(*store, store->string());
  parse_stores(json, source);
  if (const auto group = json.find("group")) source.group = group->string();
  if (const auto joins = json.find("join"))
    for (const auto& [dim, rule] : joins->members()) {
      source.joins.push_back(parse_join(dim, rule));
      for (std::size_t i = 0; i + 1 < source.joins.size(); ++i)
        if (source.joins[i].as == source.joins.back().as)
          throw rule.error(
              fmt::format("'{}' is '{}' as well", source.joins[i].dim, source.joins.back().as));
    }
  return source;
}

}  // namespace

bool is_source_name(const std::string& name) {
  constexpr std::string_view kCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
         name.find_first_not_of(kCharacters) == std::string::npos;
}

std::vector<SourceSpec> parse_sources(const JsonRef& json) {
  constexpr std::size_t kMaxSources = 256;
  std::vector<SourceSpec> sources;
  for (const auto& [name, source] : json.members()) sources.push_back(parse_source(name, source));
  if (sources.empty()) throw json.error("name at least one source");
  if (sources.size() > kMaxSources)
    throw json.error(fmt::format("{} sources; the most is {}", sources.size(), kMaxSources));
  if (!sources.front().joins.empty())
    throw json.at(sources.front().name)
        .at("join")
        .error("the first source is what the others are joined to; it has no \"join\" itself");
  return sources;
}

const SourceSpec* source_of(const std::vector<SourceSpec>& sources, const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return nullptr;
  for (const SourceSpec& source : sources)
    if (text.compare(0, colon, source.name) == 0) return &source;
  return nullptr;
}

std::string source_name(const Json& document, const Variable& variable) {
  const auto sources = document.find("sources");
  if (sources == document.end() || !sources->is_object() || sources->empty()) return {};
  const std::string source = variable.name.substr(0, variable.name.find(':'));
  const bool is_named = source != variable.name && sources->contains(source);
  return is_named ? source : sources->begin().key();
}

std::string source_prefix(const Json& document, const Variable& variable) {
  if (variable.part >= 0) return variable.part_name() + ":";
  const std::string source = source_name(document, variable);
  const bool is_first = source.empty() || source == document.at("sources").begin().key();
  return is_first ? std::string() : source + ":";
}

}  // namespace batchfs

#include "engine/view/split/split_spec.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/json_comments.h"
#include "engine/base/strings.h"
#include "engine/view/view_hints.h"
#include "engine/view/view_limits.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxParts = 100;
constexpr std::int64_t kMaxFolds = 100;
constexpr std::size_t kMaxRegions = 1000;  // of a part

SplitSpec::Region parse_region(const JsonRef& json) {
  SplitSpec::Region region{{}, json.path()};
  for (const auto& [dim, selector] : json.members())
    region.box.emplace_back(dim, parse_selector(selector));
  if (region.box.empty())
    throw json.error("name at least one dimension, as {\"time\": {\"from\": \"2016\"}}");
  return region;
}

SplitSpec::Part parse_part(const std::string& name, const JsonRef& json) {
  SplitSpec::Part part{.name = name, .path = json.path()};
  if (json.is_string()) {
    if (json.string() != "rest")
      throw json.error(
          fmt::format("'{}' is not a part: write \"rest\", or a list of regions, as "
                      "[{{\"time\": {{\"from\": \"2016\", \"to\": \"2017\"}}}}]",
                      json.string()));
    part.rest = true;
    return part;
  }
  if (json.is_object())
    throw json.error(fmt::format("expected a list of regions; write [{}]", json.value().dump()));
  for (const JsonRef& region : json.elements()) part.regions.push_back(parse_region(region));
  if (part.regions.empty()) throw json.error("the list is empty: name at least one region");
  if (part.regions.size() > kMaxRegions)
    throw json.error(fmt::format("{} regions; the most is {}", part.regions.size(), kMaxRegions));
  return part;
}

/// Names of parts become names of directories.
void check_part_name(const JsonRef& json, const std::string& name) {
  if (!is_file_name("v-" + name))
    throw json.error(fmt::format("'{}' cannot be in a file name: no '/'", name));
}

void check_part_count(const JsonRef& json, std::size_t count) {
  if (count == 0) throw json.error("name at least one part");
  if (count > kMaxParts)
    throw json.error(fmt::format("{} parts; the most is {}", count, kMaxParts));
}

void parse_parts(const JsonRef& json, SplitSpec& split) {
  const SplitSpec::Part* rest = nullptr;
  const auto members = json.members();
  check_part_count(json, members.size());
  split.parts.reserve(members.size());
  for (const auto& [name, value] : members) {
    check_part_name(value, name);
    split.parts.push_back(parse_part(name, value));
    if (!split.parts.back().rest) continue;
    if (rest != nullptr)
      throw value.error(fmt::format("'{}' is the rest already; one part can be", rest->name));
    rest = &split.parts.back();
  }
  if (rest != nullptr && members.size() == 1)
    throw json.error(
        fmt::format("'{}' is the rest of nothing: another part needs regions", rest->name));
}

void parse_fractions(const JsonRef& json, SplitSpec& split) {
  double sum = 0;
  const auto members = json.members();
  check_part_count(json, members.size());
  for (const auto& [name, value] : members) {
    check_part_name(value, name);
    const double fraction = value.number();
    if (!(fraction > 0 && fraction <= 1))
      throw value.error(
          fmt::format("{} is not a fraction; write one above 0, at most 1", fraction));
    sum += fraction;
    split.parts.push_back({.name = name, .fraction = fraction, .path = value.path()});
  }
  if (!(std::abs(sum - 1) <= 1e-9))
    throw json.error(fmt::format("the fractions add up to {:.10g}, not to 1", sum));
}

SplitSpec::Length parse_split_length(const std::string& dim, const JsonRef& json,
                                     std::int64_t least) {
  SplitSpec::Length length{dim, 0, std::nullopt, json.path()};
  if (!json.is_string()) {
    length.positions = json.integer(least, kMaxSteps);
    return length;
  }
  length.duration = read_duration(json);
  if (length.duration->months < 0 || length.duration->nanoseconds < 0 ||
      (least > 0 && length.duration->is_zero()))
    throw json.error(fmt::format("'{}' is not more than 0", json.string()));
  return length;
}

std::vector<SplitSpec::Length> parse_lengths(const JsonRef& json, std::int64_t least) {
  std::vector<SplitSpec::Length> lengths;
  for (const auto& [dim, value] : json.members())
    lengths.push_back(parse_split_length(dim, value, least));
  if (lengths.empty()) throw json.error("name at least one dimension");
  return lengths;
}

std::vector<SplitSpec::Length> parse_gap(const JsonRef& json) {
  std::vector<SplitSpec::Length> gap = parse_lengths(json, 0);
  for (const SplitSpec::Length& length : gap)
    if (length.duration && length.duration->months != 0)
      throw json.at(length.dim)
          .error(fmt::format("'{}' has no fixed length; write a gap in days, as \"30d\"",
                             duration_text(*length.duration)));
  return gap;
}

std::vector<SplitSpec::Group> parse_groups(const JsonRef& json) {
  const std::vector<std::string> kinds{"value", "year", "month", "day", "season"};
  std::vector<SplitSpec::Group> groups;
  for (const auto& [variable, value] : json.members()) {
    const std::string kind = value.string();
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      throw value.error(
          fmt::format("'{}' is none of {}{}", kind, join(kinds, ", "), did_you_mean(kind, kinds)));
    groups.push_back({variable, parse_calendar_field(kind), value.path()});
  }
  if (groups.empty()) throw json.error("name a coordinate, as {\"time\": \"year\"}");
  return groups;
}

void parse_shares(const JsonRef& json, SplitSpec& split) {
  const auto fractions = json.find("fractions"), folds = json.find("folds");
  if (fractions && folds) throw folds->error("a split has either \"fractions\" or \"folds\"");
  if (!fractions && !folds)
    throw json.error(
        "how blocks are shared out is missing; write \"fractions\": {\"train\": 0.8, \"val\": "
        "0.2}, "
        "or \"folds\": 5");
  split.shares_path = (fractions ? fractions : folds)->path();
  if (fractions) return parse_fractions(*fractions, split);
  split.folds = folds->integer(2, kMaxFolds);
  for (const char* name : {"train", "val"})
    split.parts.push_back({.name = name, .path = folds->path()});
}

void check_overrides(const JsonRef& json, const SplitSpec& split) {
  std::vector<std::string> names;
  for (const SplitSpec::Part& part : split.parts) names.push_back(part.name);
  for (const auto& [name, overrides] : json.members()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw overrides.error(
          fmt::format("there is no part '{}'{}", name, nearest_or_all(name, names)));
    overrides.allow_only({"order", "batch", "epochs", "missing"});
  }
}

/// The part of a fold's name, "fold-3-val".
std::string fold_name(std::int64_t fold, const std::string& part) {
  return fmt::format("fold-{}-{}", fold, part);
}

}  // namespace

std::vector<std::string> SplitSpec::names() const {
  std::vector<std::string> names;
  for (std::int64_t fold = 0; fold < std::max<std::int64_t>(1, folds); ++fold)
    for (const Part& part : parts)
      names.push_back(folds > 0 ? fold_name(fold, part.name) : part.name);
  return names;
}

SplitSpec parse_split(const JsonRef& json) {
  allow_only(
      json,
      {"parts", "blocks", "groups", "fractions", "folds", "draw", "seed", "gap", "with", "part"},
      view_hints::kSplit);
  SplitSpec split;
  std::optional<JsonRef> kind;
  for (const char* key : {"parts", "blocks", "groups"})
    if (const auto found = json.find(key)) {
      if (kind)
        throw found->error(
            fmt::format("a split has either this or {}; leave one out", kind->path()));
      kind = found;
    }
  if (!kind)
    throw json.error(
        "name the parts, as \"parts\": {\"train\": \"rest\", \"val\": [{\"time\": {\"from\": "
        "\"2016\"}}]}, or draw them with \"blocks\" or \"groups\"");
  split.path = kind->path();
  const auto draw = json.find("draw");
  if (draw) {
    const std::string text = draw->string();
    if (text != "permute" && text != "hash")
      throw draw->error(fmt::format("'{}' is none of permute, hash{}", text,
                                    did_you_mean(text, {"permute", "hash"})));
    split.by_hash = text == "hash";
  }
  if (const auto seed = json.find("seed"))
    split.seed = static_cast<std::uint64_t>(seed->integer(0));
  if (json.find("parts")) {
    for (const char* key : {"fractions", "folds", "draw", "seed"})
      if (const auto other = json.find(key))
        throw other->error("it goes with \"blocks\" or \"groups\", which are drawn");
    parse_parts(*kind, split);
  } else {
    if (json.find("blocks")) {
      split.blocks = parse_lengths(*kind, 1);
    } else {
      split.groups = parse_groups(*kind);
      if (draw && !split.by_hash)
        throw draw->error("groups are always drawn by \"hash\"; leave it out");
      split.by_hash = true;
    }
    parse_shares(json, split);
  }
  if (const auto gap = json.find("gap")) split.gap = parse_gap(*gap);
  if (const auto with = json.find("with")) check_overrides(*with, split);
  if (const auto part = json.find("part")) find_part(split, part->string(), part->path());
  return split;
}

SplitPart find_part(const SplitSpec& split, const std::string& name, const std::string& where) {
  const std::vector<std::string> names = split.names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw Error(ErrorCode::not_found, fmt::format("{}: there is no part '{}'{}", where, name,
                                                  nearest_or_all(name, names)));
  const auto number = static_cast<std::size_t>(found - names.begin());
  return {name, number % split.parts.size(),
          static_cast<std::int64_t>(number / split.parts.size())};
}

std::vector<std::string> split_names(const std::string& text, const std::string& where) {
  try {
    const Json document =
        parse_json(without_comments(text, where), where, {.allow_nan = false, .unique_keys = true});
    const JsonRef root(document, "");
    if (!root.is_object()) return {};  // parse_view_spec() reports it
    const auto split = root.find("split");
    if (!split) return {};
    const SplitSpec spec = parse_split(*split);
    return split->find("part") ? std::vector<std::string>{} : spec.names();
  } catch (Error& error) {
    throw error.at(where);
  }
}

ChosenPart choose_part(const JsonRef& view, const std::optional<std::string>& asked, bool first) {
  const auto split = view.find("split");
  if (!split) {
    if (asked) throw view.error(fmt::format("--part {}: the view has no \"split\"", *asked));
    return {};
  }
  ChosenPart chosen{parse_split(*split), {}, {}};
  const std::vector<std::string> names = chosen.split->names();
  if (const auto part = split->find("part")) {
    chosen.part = find_part(*chosen.split, part->string(), part->path());
    if (asked && *asked != chosen.part.name)
      throw part->error(
          fmt::format("the view is the part '{}', not '{}'", chosen.part.name, *asked));
    return chosen;
  }
  if (!asked && !first)
    throw split->error(
        fmt::format("the view has {0} parts, {1}; name one: --part {2}, or part=\"{2}\" in Python",
                    names.size(), join(names, ", "), names.front()));
  chosen.part = find_part(*chosen.split, asked.value_or(names.front()), "--part");
  chosen.suffix = "-" + chosen.part.name;
  return chosen;
}

std::optional<JsonRef> find_of_part(const JsonRef& view, const ChosenPart& chosen,
                                    std::string_view key) {
  if (chosen.split)
    if (const auto with = view.at("split").find("with"))
      if (const auto part = with->find(chosen.split->parts[chosen.part.part].name))
        if (const auto found = part->find(key)) return found;
  return view.find(key);
}

Json split_json(const Json& written, const SplitPart& part) {
  Json json = written;
  json.erase("with");
  json["part"] = part.name;
  return json;
}

}  // namespace batchfs

// Opens each source of a view as a dataset and joins them.

#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/dataset/joined/concat_datasets.h"
#include "engine/dataset/joined/join_sources.h"
#include "engine/dataset/joined/stack_datasets.h"
#include "tools/cli/groups.h"

namespace batchfs {

namespace {

/// Collects every text and every key of a view: each may name an array.
void collect(const Json& json, std::set<std::string>& texts) {
  if (json.is_string()) texts.insert(json.get<std::string>());
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) texts.insert(key);
    collect(value, texts);
  }
}

}  // namespace

GroupDatasets& GroupDatasets::of_store(const std::string& name, const std::string& path) {
  if (name.empty()) return *this;
  const auto opened = opened_.others.find(name);
  if (opened == opened_.others.end()) {
    if (opened_.series.contains(name))
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: '{}' is several stores; name it in \"sources\" of the view",
                              path, name));
    std::vector<std::string> names;
    for (const auto& [other, store] : opened_.others) names.push_back(other);
    for (const auto& [series, members] : opened_.series) names.push_back(series);
    throw Error(ErrorCode::not_found,
                fmt::format("{}: no store '{}' is given{}; add --store {}=URL to the command", path,
                            name, did_you_mean(name, names), name));
  }
  std::unique_ptr<GroupDatasets>& datasets = others_[name];
  if (datasets == nullptr) datasets = std::make_unique<GroupDatasets>(*opened->second);
  return *datasets;
}

std::shared_ptr<const Dataset> GroupDatasets::of_source(const SourceSpec& source, const Json& view,
                                                        const std::string& where) {
  std::vector<std::string> stores = source.stores, keys = source.keys;
  if (!source.store.empty()) {
    const auto series = opened_.series.find(source.store);
    stores = series != opened_.series.end() ? series->second : std::vector{source.store};
    for (const std::string& store : stores)  // "era.1980"
      keys.push_back(store.size() > source.store.size() ? store.substr(source.store.size() + 1)
                                                        : store);
  }
  const bool concatenates = source.concat.dim || source.concat.prefer != ConcatRule::Prefer::none;
  if (stores.empty() && concatenates)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: it names no stores; \"stores\" names several", source.path));
  if (stores.empty()) return choose(view, where).dataset;
  if (stores.size() == 1 && concatenates && !source.concat.is_new)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is one store; \"stores\" names several", source.path,
                            stores.front()));
  std::vector<ConcatPart> parts;
  for (const std::string& store : stores) {
    GroupDatasets& datasets =
        of_store(store, source.path + (source.stores.empty() ? ".store" : ".stores"));
    try {
      parts.push_back({store, datasets.choose(view, where).dataset});
    } catch (const Error& error) {
      if (stores.size() == 1) throw;
      throw Error(error.code(), fmt::format("{}: '{}': {}", source.path, store, error.why()),
                  error.where());
    }
  }
  if (source.concat.is_new) return stack_datasets(parts, keys, source.concat, stacked_);
  return concat_datasets(parts, source.concat);
}

std::shared_ptr<const Dataset> GroupDatasets::joined(const Json& view) {
  const std::vector<SourceSpec> specs = parse_sources(JsonRef(view.at("sources"), "sources"));
  Json rest = view;
  rest.erase("sources");
  std::set<std::string> texts;
  collect(rest, texts);
  std::vector<JoinedSource> sources;
  for (const SourceSpec& spec : specs) {
    JoinedSource source{spec.name, spec.path, nullptr, spec.joins, {}};
    const bool is_first = &spec == &specs.front();
    std::vector<std::string> named;
    for (const std::string& text : texts) {
      const SourceSpec* of = source_of(specs, text);
      if (of == &spec) {
        named.push_back(text.substr(spec.name.size() + 1));
        source.named.insert(named.back());
      } else if (of == nullptr && is_first) {
        named.push_back(text);
      }
    }
    // The view of this source alone.
    Json own = {{"variables", named}};
    for (const char* key : {"window", "select"})
      if (const auto found = rest.find(key); found != rest.end()) own[key] = *found;
    for (const JoinedSource::Join& join : spec.joins) own["window"][join.dim] = 1;
    if (spec.group) own["group"] = *spec.group;
    try {
      source.dataset = of_source(spec, own, "");
    } catch (const Error& error) {
      if (error.why().starts_with(spec.path)) throw;
      throw Error(error.code(), fmt::format("{}: {}", spec.path, error.why()), error.where());
    }
    sources.push_back(std::move(source));
  }
  return join_sources(sources);
}

}  // namespace batchfs

#include "engine/view/mix/mix_spec.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/json_comments.h"
#include "engine/view/sources_spec.h"
#include "engine/view/view_hints.h"

namespace batchfs {

namespace {

constexpr std::size_t kMaxComponents = 256;
constexpr std::int64_t kMaxBlock = INT64_C(1) << 24;

/// Keys of a view that each component has for itself.
constexpr const char* kOfComponents[] = {"group",   "level",   "sources",  "variables", "select",
                                         "window",  "tensors", "dtype",    "normalize", "missing",
                                         "samples", "reserve", "xbatcher", "split"};

double share(const JsonRef& json) {
  const double value = json.number();
  if (!(value >= 0) || !std::isfinite(value))
    throw json.error(fmt::format("{} is not a number from 0 on", json.value().dump()));
  return value;
}

MixComponent parse_component(const std::string& name, const JsonRef& json) {
  if (!is_source_name(name))
    throw json.error(fmt::format(
        "'{}' cannot be a component's name: it has letters, digits, '_', '-' and '.'", name));
  MixComponent component{.name = name, .path = json.path()};
  if (json.is_string()) {
    component.file = json.string();
    return component;
  }
  json.allow_only({"view", "part", "store", "weight", "repeat", "samples"});
  const JsonRef view = json.at("view");
  if (view.is_object()) {
    component.view = view.value();
  } else {
    component.file = view.string();
    if (component.file.empty() || component.file == "-")
      throw view.error("expected the name of a view's file, or the view itself");
  }
  if (const auto part = json.find("part")) component.part = part->string();
  if (const auto store = json.find("store")) {
    component.store = store->string();
    if (!is_source_name(component.store))
      throw store->error(fmt::format(
          "'{}' is not a name of a store: a view names stores as --store NAME=URL does, not by URL",
          component.store));
  }
  if (const auto weight = json.find("weight")) component.weight = share(*weight);
  if (const auto repeat = json.find("repeat")) component.repeat = share(*repeat);
  if (const auto samples = json.find("samples"))
    component.samples = samples->integer(0, kMaxMixSamples);
  return component;
}

/// Which of "weight", "repeat" and "samples" a component has; empty: none.
std::string kind_of(const MixComponent& component, const JsonRef& json) {
  std::string kind;
  const auto add = [&](bool has, const char* key) {
    if (has && !kind.empty())
      throw json.error(fmt::format("it has \"{}\" and \"{}\"; leave one of them out", kind, key));
    if (has) kind = key;
  };
  add(component.weight.has_value(), "weight");
  add(component.repeat.has_value(), "repeat");
  add(component.samples.has_value(), "samples");
  return kind;
}

void parse_components(const JsonRef& json, MixSpec& spec) {
  std::optional<std::string> kind;
  double sum = 0;
  for (const auto& [name, value] : json.members()) {
    const MixComponent& component = spec.components.emplace_back(parse_component(name, value));
    const std::string own = kind_of(component, value);
    if (kind && *kind != own)
      throw value.error(
          own.empty() ? fmt::format("it has no \"{}\", and '{}' has one: all have one or none has",
                                    *kind, spec.components.front().name)
          : kind->empty()
              ? fmt::format("it has a \"{}\", and '{}' has none: all have one or none has", own,
                            spec.components.front().name)
              : fmt::format("it has \"{}\", and '{}' has \"{}\": one kind for all", own,
                            spec.components.front().name, *kind));
    kind = own;
    sum += component.weight.value_or(0) + component.repeat.value_or(0) +
           static_cast<double>(component.samples.value_or(0));
  }
  if (spec.components.empty()) throw json.error("name at least one view");
  if (spec.components.size() > kMaxComponents)
    throw json.error(
        fmt::format("{} views; the most is {}", spec.components.size(), kMaxComponents));
  if (!kind->empty() && sum == 0) throw json.error(fmt::format("each \"{}\" is 0", *kind));
  if (!std::isfinite(sum))
    throw json.error(fmt::format("the sum of each \"{}\" is too large", *kind));
}

void parse_mixing(const JsonRef& batch, MixSpec& spec) {
  allow_only(batch, {"size", "remainder", "mixing", "block"}, view_hints::kBatch);
  if (const auto mixing = batch.find("mixing")) {
    const std::string text = mixing->string();
    if (text != "sample" && text != "stratified" && text != "batch")
      throw mixing->error(fmt::format("'{}' is none of sample, stratified, batch{}", text,
                                      did_you_mean(text, {"sample", "stratified", "batch"})));
    spec.mixing = text == "sample"       ? MixSpec::Mixing::sample
                  : text == "stratified" ? MixSpec::Mixing::stratified
                                         : MixSpec::Mixing::batch;
  }
  if (const auto block = batch.find("block")) {
    if (spec.mixing == MixSpec::Mixing::stratified)
      throw block->error("with \"stratified\" a batch is the block; leave it out");
    spec.block = block->integer(1, kMaxBlock);
  }
}

void parse_starts(const JsonRef& json, MixSpec& spec) {
  for (const auto& [name, start] : json.members()) {
    std::vector<std::string> names;
    bool found = false;
    for (MixComponent& component : spec.components) {
      names.push_back(component.name);
      if (component.name != name) continue;
      component.start = parse_mix_start(start);
      found = true;
    }
    if (!found)
      throw start.error(
          fmt::format("\"mix\" has no view '{}'{}", name, nearest_or_all(name, names)));
  }
}

/// Name, batch, order, epochs and formats, as any view has them.
ViewSpec parse_common(const JsonRef& root, const std::string& name, const std::string& where) {
  Json common = {{"window", {{"sample", 1}}}};
  for (const char* key : {"name", "order", "epochs", "formats"})
    if (const auto found = root.find(key)) common[key] = found->value();
  if (const auto batch = root.find("batch")) {
    common["batch"] = batch->value();
    if (batch->is_object()) common["batch"].erase("mixing"), common["batch"].erase("block");
  }
  ViewSpec view = parse_view_spec(common.dump(), name, where);
  view.window.clear();
  return view;
}

}  // namespace

bool is_mixture(const std::string& json, const std::string& where) {
  const Json view = parse_json(without_comments(json, where), where, {.allow_nan = false});
  return view.is_object() && view.contains("mix");
}

std::string with_mix_start(const std::string& json, const std::string& start,
                           const std::string& where) {
  Json view =
      parse_json(without_comments(json, where), where, {.allow_nan = false, .unique_keys = true});
  if (!view.is_object() || !view.contains("mix"))
    throw Error(ErrorCode::invalid_argument, "\"start\" is of a mixture, and the view is none",
                where);
  view["start"] = parse_json(start, "--start", {.allow_nan = false, .unique_keys = true});
  return view.dump(-1, ' ', false, Json::error_handler_t::replace);
}

MixSpec parse_mix_spec(const std::string& json, const std::string& name, const std::string& where) {
  try {
    MixSpec spec;
    const Json document =
        parse_json(without_comments(json, where), where, {.allow_nan = false, .unique_keys = true});
    const JsonRef root(document, "");
    for (const char* key : kOfComponents)
      if (const auto found = root.find(key))
        throw found->error(fmt::format(
            "a mixture has no \"{}\" of its own: it belongs to the views that \"mix\" names", key));
    allow_only(
        root,
        {"$schema", "name", "mix", "temperature", "batch", "order", "epochs", "formats", "start"},
        view_hints::kView);
    if (const auto order = root.find("order"))
      if (order->is_object())
        for (const auto& [key, value] : order->members())
          if (key != "seed")
            throw value.error(fmt::format(
                "the order of a mixture has a \"seed\" only: \"{}\" belongs to its views", key));
    spec.view = parse_common(root, name, where);
    spec.view.document = document;
    parse_components(root.at("mix"), spec);
    if (const auto batch = root.find("batch"); batch && batch->is_object())
      parse_mixing(*batch, spec);
    const MixComponent& first = spec.components.front();
    const bool counts = first.repeat || first.samples;
    if (const auto temperature = root.find("temperature")) {
      spec.temperature = temperature->number();
      if (!(spec.temperature > 0) || !std::isfinite(spec.temperature))
        throw temperature->error("expected a number above 0");
      if (counts)
        throw temperature->error(
            "it goes with \"weight\"; \"repeat\" and \"samples\" say how often each sample comes");
    }
    if (counts && spec.view.epoch_samples)
      throw root.at("epochs").at("samples").error(
          fmt::format("the \"{}\" of \"mix\" say how long an epoch is; leave it out",
                      first.repeat ? "repeat" : "samples"));
    if (const auto start = root.find("start")) parse_starts(*start, spec);
    return spec;
  } catch (Error& error) {
    throw error.at(where);
  }
}

std::string_view mixing_name(MixSpec::Mixing mixing) {
  switch (mixing) {
    case MixSpec::Mixing::sample:
      return "sample";
    case MixSpec::Mixing::stratified:
      return "stratified";
    case MixSpec::Mixing::batch:
      return "batch";
  }
  return "";
}

}  // namespace batchfs

#include "engine/view/describe/resolved.h"

#include "engine/view/order/order_spec.h"
#include "engine/view/rows/mixed_rows.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

/// "window", as the numbers that durations stand for.
Json window_json(const ViewSpec& spec) {
  Json window = Json::object();
  for (const WindowSpec& dim : spec.window) {
    Json& own = window[dim.dim] = {{"size", dim.size}};
    if (dim.every)
      own["every"] = duration_text(*dim.every);
    else
      own["stride"] = dim.stride;
    if (dim.origin) own["origin"] = *dim.origin;
    own["wrap"] = dim.wrap;
    own["edge"] = edge_name(dim.edge);
    if (dim.edge != WindowSpec::Edge::drop && spec.pad_value)
      window[dim.dim]["pad_value"] = *spec.pad_value;
  }
  return window;
}

/// "normalize" with the numbers themselves: readers of this text do not have the file.
void add_normalize(const NormalizeSpec& spec, const TensorSet& set, Json& view) {
  Json statistics = Json::object(), names = Json::array();
  const auto add = [&](const std::string& name) {
    names.push_back(name);
    if (spec.needs_statistics()) statistics[name] = spec.statistics.at(name);
  };
  for (const auto& [variable, normalization] : set.normalizations)
    add(set.variables[variable]->name);
  for (const std::string& channel : set.made.normalized()) add(channel);
  if (spec.needs_statistics()) {
    view["normalize"]["statistics"] = std::move(statistics);
  } else {
    // No statistics name the normalized variables.
    view["normalize"].erase("except");
    view["normalize"]["variables"] = std::move(names);
  }
}

Json resolved_mixture(const View& mixture) {
  const MixedRows& rows = *mixture.mixture();
  const ViewSpec& spec = mixture.spec();
  Json view = spec.document;
  view["name"] = spec.name;
  for (std::size_t c = 0; c < rows.components().size(); ++c) {
    const View& component = *rows.components()[c];
    Json& own = view["mix"][rows.spec().components[c].name];
    if (!own.is_object()) own = Json::object();
    own["view"] = resolved_view(component);
    for (const char* key : {"batch", "formats", "epochs"})  // the mixture's
      own["view"].erase(key);
    if (component.spec().epoch_samples)
      own["view"]["epochs"] = {{"samples", *component.spec().epoch_samples}};
  }
  view["temperature"] = rows.spec().temperature;
  view["batch"] = {{"size", spec.batch_size},
                   {"remainder", remainder_name(spec.remainder)},
                   {"mixing", mixing_name(rows.spec().mixing)}};
  if (rows.spec().mixing != MixSpec::Mixing::stratified)
    view["batch"]["block"] = rows.schedule().block();
  view["order"] = {{"seed", spec.order.seed}};
  view["epochs"] = {{"count", spec.epochs}, {"samples", mixture.epoch_samples()}};
  view["formats"] = spec.formats;
  return view;
}

}  // namespace

Json resolved_view(const View& view) {
  if (view.mixture() != nullptr) return resolved_mixture(view);
  const ViewSpec& spec = view.spec();
  Json json = spec.document;
  json["name"] = spec.name;
  if (!view.dataset()->path().empty()) json["group"] = view.dataset()->path();
  if (!json.contains("variables") && !json.contains("tensors")) {
    Json names = Json::array();
    for (const Variable* variable : view.variables())
      if (variable->part <= 0) names.push_back(variable->name);
    json["variables"] = std::move(names);
  }
  if (!spec.xbatcher) {
    json["window"] = window_json(spec);
    json["batch"] = {{"size", spec.batch_size}, {"remainder", remainder_name(spec.remainder)}};
    json["order"] = order_json(spec);
  }
  if (spec.normalize) add_normalize(*spec.normalize, view.tensor_set(), json);
  // With digests: a file that changed is another view.
  if (spec.list) json["samples"]["list"] = file_json(spec.list->file);
  if (spec.weights && !spec.weights->file.name.empty())
    json["samples"]["weights"] = file_json(spec.weights->file);
  json["epochs"] = epochs_json(spec);
  json["missing"] = {{"nan", missing_name(spec.missing)}};
  if (spec.missing == ViewSpec::Missing::fill) json["missing"]["value"] = spec.fill_value;
  if (spec.missing == ViewSpec::Missing::skip) add_to_json(spec.skip, json["missing"]);
  if (spec.split) json["split"] = split_json(json["split"], spec.part);
  json["formats"] = spec.formats;
  return json;
}

}  // namespace batchfs

#include "engine/view/describe/schema.h"

#include <algorithm>

#include "engine/dataset/attributes.h"
#include "engine/view/order/order_spec.h"
#include "engine/view/rows/mixed_rows.h"
#include "engine/view/tensors/tensor_layout.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

/// Positions that are listed one by one, at most.
constexpr std::int64_t kMaxListed = 1 << 20;

/// Where in the store the positions of a selection lie, for dimensions without labels.
Json positions_json(const Positions& positions) {
  const std::int64_t size = positions.size();
  const std::int64_t step = size > 1 ? positions[1] - positions[0] : 1;
  bool even = true;
  for (std::int64_t i = 1; i < size && even && !positions.is_range(); ++i)
    even = positions[i] - positions[i - 1] == step;
  if (even) return {{"first", size > 0 ? positions[0] : 0}, {"step", step}, {"size", size}};
  if (size > kMaxListed) return {{"first", 0}, {"step", 1}, {"size", size}};
  Json list = Json::array();
  for (std::int64_t i = 0; i < size; ++i) list.push_back(positions[i]);
  return {{"list", std::move(list)}};
}

/// A variable of a tensor: its name, the dimensions that went into the stack with their lengths,
/// slowest first, and the offsets of those that have some: numbers, or durations as text.
Json variable_json(const TensorSet& set, const VariablePlacement& placement,
                   const TensorSpec& tensor) {
  const Variable& variable =
      placement.made ? set.made[placement.variable].variable() : *set.variables[placement.variable];
  Json result{{"name", variable.name}};
  if (placement.made) result["make"] = set.made[placement.variable].spec().kind->name;
  std::vector<std::pair<std::int64_t, std::size_t>> joined;
  Json offsets = Json::object();
  for (std::size_t d = 0; d < placement.axes.size(); ++d) {
    const AxisPlacement& axis = placement.axes[d];
    if (axis.durations != nullptr) {
      Json& texts = offsets[variable.dims[d]] = Json::array();
      for (const Duration& duration : *axis.durations) texts.push_back(duration_text(duration));
    } else if (axis.by_label != nullptr) {
      Json& texts = offsets[variable.dims[d]] = Json::array();
      for (const Duration& duration : axis.by_label->durations())
        texts.push_back(duration_text(duration));
    } else if (axis.offsets != std::vector<std::int64_t>{0}) {
      offsets[variable.dims[d]] = axis.offsets;
    }
    const auto own = std::find(tensor.dims.begin(), tensor.dims.end(), tensor_dim(variable, d));
    const bool in_stack =
        own == tensor.dims.end() || own - tensor.dims.begin() == tensor.stack_axis;
    if (tensor.stack_axis >= 0 && in_stack && !axis.selected.drops_dim())
      joined.emplace_back(-axis.stride, d);
  }
  std::sort(joined.begin(), joined.end());
  for (const auto& [stride, d] : joined)
    result["joined"][variable.dims[d]] =
        placement.axes[d].extent() *
        (placement.axes[d].durations != nullptr
             ? static_cast<std::int64_t>(placement.axes[d].durations->size())
             : 1);
  if (!offsets.empty()) result["offsets"] = std::move(offsets);
  return result;
}

/// A tensor of a view, by its number.
Json tensor_json(const TensorSet& set, std::uint32_t t) {
  const TensorSpec& tensor = set.specs[t];
  Json entry{{"name", tensor.name},
             {"dtype", tensor.type.name()},
             {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
             {"dims", tensor.dims}};
  if (tensor.stack_axis >= 0)
    entry["stack"] = tensor.dims[static_cast<std::size_t>(tensor.stack_axis)];
  if (!tensor.coarsen.empty()) entry["coarsen"] = coarsen_json(tensor.coarsen);
  if (!tensor.channels.empty()) entry["channels"] = tensor.channels;
  Json variables = Json::array();
  std::vector<const VariablePlacement*> of_tensor;
  for (const auto* placements : {&set.placements, &set.made_placements, &set.coarsened_placements})
    for (const VariablePlacement& placement : *placements)
      if (placement.tensor == t && placement.is_first) of_tensor.push_back(&placement);
  std::stable_sort(of_tensor.begin(), of_tensor.end(),
                   [](const auto* a, const auto* b) { return a->base < b->base; });
  for (const VariablePlacement* placement : of_tensor)
    variables.push_back(variable_json(set, *placement, tensor));
  entry["variables"] = std::move(variables);
  entry["attributes"] = attributes_of(set, t);
  return entry;
}

/// The keys of a mixture beside those of any view.
void add_mixture(const View& view, Json& schema) {
  const MixedRows& rows = *view.mixture();
  const MixSchedule& schedule = rows.schedule();
  if (view.epoch_samples() != view.samples()) schema["epoch_samples"] = view.epoch_samples();
  schema["mixing"] = mixing_name(rows.spec().mixing);
  schema["block"] = schedule.block();
  schema["period"] = schedule.counts().period;
  Json components = Json::array();
  for (std::size_t c = 0; c < rows.components().size(); ++c) {
    const View& component = *rows.components()[c];
    components.push_back({{"name", rows.spec().components[c].name},
                          {"first", rows.first_parts(c).sample},
                          {"samples", component.samples()},
                          {"rate", schedule.counts().rates[c]},
                          {"per_epoch", schedule.counts().per_epoch[c]},
                          {"start", rows.spec().components[c].start.json()}});
    if (!component.spec().normalize) continue;
    // The variables that the numbers of its "normalize" belong to: names may differ.
    const Json own = view_schema(component);
    Json& tensors = components.back()["tensors"] = Json::object();
    for (const Json& tensor : own["tensors"])
      tensors[tensor["name"].get<std::string>()] = tensor["variables"];
  }
  schema["components"] = std::move(components);
}

}  // namespace

Json attributes_of(const TensorSet& set, std::uint32_t tensor) {
  Json shared;
  bool normalized = false;
  std::vector<std::uint32_t> variables;
  for (const auto& [key, converter] : set.converters)
    if (key.first == tensor) variables.push_back(key.second);
  for (const VariablePlacement& placement : set.coarsened_placements)
    if (placement.tensor == tensor && !placement.made) variables.push_back(placement.variable);
  for (const std::uint32_t variable : variables) {
    const Json own = decoded_attributes(*set.variables[variable]);
    normalized = normalized || set.normalizations.contains(variable);
    if (shared.is_null()) {
      shared = own;
      continue;
    }
    Json both = Json::object();
    for (const auto& [name, value] : shared.items())
      if (const auto it = own.find(name); it != own.end() && *it == value) both[name] = value;
    shared = std::move(both);
  }
  if (shared.is_null()) return Json::object();
  if (!normalized || !shared.contains("units")) return shared;
  Json renamed = Json::object();
  for (const auto& [name, value] : shared.items())
    renamed[name == "units" ? "original_units" : name] = value;
  return renamed;
}

Json view_schema(const View& view) {
  Json tensors = Json::array();
  for (std::uint32_t t = 0; t < view.tensors().size(); ++t)
    tensors.push_back(tensor_json(view.tensor_set(), t));
  Json windows = Json::array();
  for (const WindowDim& window : view.axes().windows) {
    windows.push_back({{"dim", window.name}, {"size", window.size}});
    if (view.coordinate(window.name) == nullptr)
      windows.back()["positions"] = positions_json(view.axes().along(window.name));
  }
  Json coordinates = Json::array();
  for (const ViewCoordinate& coordinate : view.coordinates()) {
    Json entry{{"name", coordinate.name},
               {"dims", coordinate.dims},
               {"dtype", coordinate.values->type.name()},
               {"size", coordinate.values->shape[0]},
               {"attributes", coordinate.attributes}};
    if (!coordinate.note.empty()) entry["note"] = coordinate.note;
    coordinates.push_back(std::move(entry));
  }
  Json schema = {{"view", view.name()},
                 {"samples", view.samples()},
                 {"batch_size", view.batch_size()},
                 {"batches", view.batches()},
                 {"epochs", view.spec().epochs},
                 {"window", std::move(windows)},
                 {"tensors", std::move(tensors)},
                 {"coordinates", std::move(coordinates)},
                 {"formats", view.spec().formats}};
  if (view.spec().epoch_samples) schema["epoch_samples"] = *view.spec().epoch_samples;
  if (view.mixture() != nullptr) add_mixture(view, schema);
  return schema;
}

}  // namespace batchfs

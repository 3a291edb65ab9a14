// The channels of a view's tensors: variables of the store, channels that are made, and those that
// are made of variables.

#include <algorithm>

#include <fmt/format.h>

#include "engine/dataset/joined/axis_join.h"
#include "engine/view/coarsen/coarsening.h"
#include "engine/view/made/combination.h"
#include "engine/view/tensors/tensor_builder.h"
#include "engine/view/window_checks.h"

namespace batchfs {

void TensorBuilder::add_tensor(TensorDefinition definition) {
  const auto t = static_cast<std::uint32_t>(set_.specs.size());
  set_.channels.push_back(use_channels(definition));
  set_.definitions.push_back(std::move(definition));
  const TensorDefinition& tensor = set_.definitions.back();
  const TensorSource source{t,
                            tensor,
                            type_of(tensor, set_.channels.back()),
                            set_.channels.back(),
                            axes_.selected,
                            axes_.windows,
                            spec_.batch_size,
                            axes_.joined,
                            set_.made.field_dims()};
  Dims sizes;
  for (const WindowDim& window : axes_.windows) sizes.push_back(window.size);
  TensorLayout layout = lay_out(source, sizes);
  layout.spec.padded = may_pad(axes_.windows, layout.placements);
  if (layout.spec.padded) layout.spec.pad = pad_element(layout.spec.type, tensor.path);
  layout.spec.channels = channel_names(source, layout, sizes, dataset_);
  for (const auto& each : set_.channels.back())
    if (tensor.coarsen.empty() || each.made) add_converter(t, each, layout.spec.type);
  for (VariablePlacement& placement : layout.placements)
    (placement.made ? set_.made_placements : set_.placements).push_back(std::move(placement));
  set_.coarsened_placements.insert(set_.coarsened_placements.end(), layout.coarsened.begin(),
                                   layout.coarsened.end());
  set_.row_bytes.push_back(layout.sample_bytes);
  set_.row_shapes.push_back(layout.spec.shape);
  set_.row_shapes.back()[0] = 1;
  set_.specs.push_back(std::move(layout.spec));
}

void TensorBuilder::add_converter(std::uint32_t tensor, const TensorSource::Channels& channels,
                                  const DataType& type) {
  if (!channels.made) return add_converter(tensor, channels.number, type);
  const bool fills = spec_.missing == ViewSpec::Missing::fill;
  set_.made.add_converter(tensor, channels.number, type, spec_.normalize,
                          fills ? std::optional(spec_.fill_value) : std::nullopt, dataset_,
                          axes_.selected);
}

std::vector<TensorSource::Channels> TensorBuilder::use_channels(const TensorDefinition& tensor) {
  std::vector<std::string> windows;
  for (const WindowDim& window : axes_.windows) windows.push_back(window.name);
  std::vector<const Variable*> in_tensor;
  for (const std::string& name : tensor.variables)
    if (const Variable* variable = dataset_.find(name)) in_tensor.push_back(variable);
  std::vector<TensorSource::Channels> channels;
  auto made = tensor.made.begin();
  auto stored = tensor.variables.begin();
  while (made != tensor.made.end() || stored != tensor.variables.end()) {
    const std::size_t place = channels.size();
    if (made != tensor.made.end() && made->place == place) {
      const std::uint32_t number = set_.made.use(*made++, dataset_, windows, in_tensor);
      channels.push_back({number, &set_.made[number].variable(), true});
    } else {
      const std::uint32_t number = use_variable(
          *stored++, spec_.tensors.empty() ? tensor.path
                                           : fmt::format("{}.variables[{}]", tensor.path, place));
      channels.push_back({number, &set_.whole_variable(number), false});
    }
  }
  return channels;
}

void TensorBuilder::add_operands(const std::string& path, const Variable& variable,
                                 const VariablePlacement& operand, ChannelPadding& padding) {
  static const std::vector<OffsetList> kNone;
  const std::uint32_t tensor = padding.tensor();
  const auto& durations = spec_.tensors.empty() ? kNone : spec_.tensors[tensor].durations;
  VariablePlacement whole = operand;
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const AxisJoin* join = variable.join_along(d);
    if (join == nullptr) continue;
    if (whole.axes[d].scale != join->ratio())
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: '{}' is joined along '{}' with a ratio, which channels made of "
                              "variables do not support",
                              path, variable.name, variable.dims[d]));
    whole.axes[d].selected = axes_.joined.along(variable, d);
  }
  for (const VariablePlacement& each : axes_.joined.by_offset(variable, durations, whole)) {
    padding.add(each, variable.dims, axes_.windows);
    for (VariablePlacement& part : variable.is_concatenated()
                                       ? axes_.joined.in_parts(variable, each)
                                       : std::vector<VariablePlacement>{each}) {
      set_.converters.try_emplace(
          std::pair(part.tensor, part.variable),
          std::make_shared<const Converter>(set_.variables[part.variable]->cf, float64()));
      set_.more_placements.push_back(part);
      set_.scanned.push_back(std::move(part));
      set_.scanned.back().tensor = tensor;
    }
  }
}

void TensorBuilder::add_combination(const MadeChannel& channel, const VariablePlacement& placement,
                                    std::shared_ptr<const Converter> converter,
                                    ChannelPadding& padding) {
  const auto own = static_cast<std::uint32_t>(set_.specs.size() + set_.combinations.size());
  const auto combination = std::make_shared<const Combination>(channel, padding.tensor(), placement,
                                                               std::move(converter));
  set_.combinations.push_back(combination);
  for (std::size_t i = 0; i < channel.spec().of.size(); ++i) {
    const std::string path = fmt::format("{}.of[{}]", channel.spec().path, i);
    const std::uint32_t number = use_variable(channel.spec().of[i], path);
    const Variable& variable = set_.whole_variable(number);
    add_operands(path, variable, combination->operand(i, variable, number, own), padding);
  }
}

void TensorBuilder::add_coarsening(const VariablePlacement& placement) {
  const TensorSpec& tensor = set_.specs[placement.tensor];
  const std::string& path = tensor.coarsen.front().path;
  const Variable& variable = placement.made ? set_.made[placement.variable].variable()
                                            : set_.whole_variable(placement.variable);
  const auto own = static_cast<std::uint32_t>(set_.specs.size() + set_.combinations.size());
  CfDecoding reduced;  // of the blocks' values
  reduced.stored = reduced.decoded = reduced.arithmetic = float64();
  const auto coarsening = std::make_shared<Coarsening>(
      tensor.coarsen, variable.name, variable.dims, placement,
      placement.made ? set_.made.converter(placement.tensor, placement.variable)
                     : std::make_shared<const Converter>(
                           reduced, tensor.type, finish_of(placement.variable, tensor.type)));
  set_.combinations.push_back(coarsening);
  const VariablePlacement operand = coarsening->operand(placement, own);
  ChannelPadding padding(placement, variable.dims, axes_.windows);
  if (!placement.made) {
    for (std::size_t d = 0; d < variable.dims.size(); ++d)
      if (variable.join_along(d) != nullptr && coarsening->has_numbers_along(d) &&
          placement.axes[d].window >= 0 && has_durations(placement.tensor, variable.dims[d]))
        throw Error(ErrorCode::not_supported,
                    fmt::format("{}: '{}' is normalized with a number for each position along "
                                "'{}', and looks durations up along it",
                                path, variable.name, variable.dims[d]));
    add_operands(path, variable, operand, padding);
  } else {
    set_.made.add_operand(own, placement.variable);
    if (set_.made[placement.variable].is_combined()) {
      add_combination(set_.made[placement.variable], operand,
                      set_.made.converter(own, placement.variable), padding);
    } else {
      padding.add(operand, variable.dims, axes_.windows);
      set_.more_placements.push_back(operand);
    }
  }
  coarsening->set_padding(padding);
  keep_padding(std::move(padding));
}

bool TensorBuilder::has_durations(std::uint32_t tensor, const std::string& dim) const {
  if (spec_.tensors.empty()) return false;
  const auto& lists = spec_.tensors[tensor].durations;
  return std::any_of(lists.begin(), lists.end(),
                     [&](const OffsetList& each) { return each.dim == dim; });
}

void TensorBuilder::keep_padding(ChannelPadding padding) {
  if (padding.empty()) return;
  TensorSpec& tensor = set_.specs[padding.tensor()];
  tensor.padded = true;
  tensor.pad = pad_element(tensor.type, "tensors." + tensor.name);
  set_.paddings.push_back(std::move(padding));
}

void TensorBuilder::add_combinations() {
  set_.scanned = set_.placements;
  const bool is_partial = std::any_of(
      spec_.window.begin(), spec_.window.end(),
      [](const WindowSpec& window) { return window.edge == WindowSpec::Edge::partial; });
  const auto check_edges = [&](const std::string& path, const std::string& what) {
    if (is_partial)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: {} do not go with \"edge\": \"partial\" of a window; "
                              "\"pad\" fills it",
                              path, what));
  };
  for (const VariablePlacement& placement : set_.made_placements) {
    const MadeChannel& channel = set_.made[placement.variable];
    if (!channel.is_combined()) {
      set_.more_placements.push_back(placement);
      continue;
    }
    check_edges(channel.spec().path,
                fmt::format("channels of variables, as '{}',", channel.variable().name));
    ChannelPadding padding(placement, channel.variable().dims, axes_.windows);
    add_combination(channel, placement, set_.made.converter(placement.tensor, placement.variable),
                    padding);
    keep_padding(std::move(padding));
  }
  for (const VariablePlacement& placement : set_.coarsened_placements) {
    check_edges(set_.specs[placement.tensor].coarsen.front().path, "coarsened tensors");
    add_coarsening(placement);
  }
  for (const auto& combination : set_.combinations)
    set_.row_bytes.push_back(combination->sample_bytes());
  set_.checked = checked_placements(spec_.skip, set_.specs, set_.variables, set_.scanned);
}

DataType TensorBuilder::type_of(const TensorDefinition& tensor,
                                const std::vector<TensorSource::Channels>& channels) const {
  const Variable* first = nullptr;
  bool makes = false;
  for (const TensorSource::Channels& each : channels) {
    makes = makes || each.made;
    if (first == nullptr && !each.made) first = each.variable;
  }
  if (first == nullptr) return spec_.dtype.value_or(spec_.as_decoded ? float64() : float32());
  const auto type_in = [&](const Variable& variable) {
    const DataType type = result_type(variable);
    if (tensor.coarsen.empty() || type.is_float()) return type;
    if (!type.is_integer())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' is {}, and only numbers are coarsened",
                              tensor.coarsen.front().path, variable.name, type.name()));
    return spec_.dtype.value_or(float64());
  };
  const DataType type = type_in(*first);
  for (const TensorSource::Channels& each : channels)
    if (!each.made && !(type_in(*each.variable) == type))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: '{}' is {} and '{}' is {}; give the view a \"dtype\" to stack them",
                      tensor.path, first->name, type.name(), each.variable->name,
                      type_in(*each.variable).name()));
  if (makes && !type.is_float())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is {}, and made channels are floats; normalize it, or give "
                            "them a tensor of their own",
                            tensor.path, first->name, type.name()));
  return type;
}

}  // namespace batchfs

// The channels of a view's tensors: variables of the store, channels that are made, and those that
// are made of variables.

#include <algorithm>

#include <fmt/format.h>

#include "engine/dataset/joined/axis_join.h"
#include "engine/view/coarsen/coarsening.h"
#include "engine/view/made/combination.h"
#include "engine/view/view.h"

namespace batchfs {

void View::add_converter(std::uint32_t tensor, const TensorSource::Channels& channels,
                         const DataType& type) {
  if (!channels.made) return add_converter(tensor, channels.number, type);
  const bool fills = spec_.missing == ViewSpec::Missing::fill;
  made_.add_converter(tensor, channels.number, type, spec_.normalize,
                      fills ? std::optional(spec_.fill_value) : std::nullopt, *dataset_, selected_);
}

std::vector<TensorSource::Channels> View::use_channels(const TensorDefinition& tensor) {
  std::vector<std::string> windows;
  for (const WindowDim& window : window_dims_) windows.push_back(window.name);
  std::vector<const Variable*> in_tensor;
  for (const std::string& name : tensor.variables)
    if (const Variable* variable = dataset_->find(name)) in_tensor.push_back(variable);
  std::vector<TensorSource::Channels> channels;
  auto made = tensor.made.begin();
  auto stored = tensor.variables.begin();
  while (made != tensor.made.end() || stored != tensor.variables.end()) {
    const std::size_t place = channels.size();
    if (made != tensor.made.end() && made->place == place) {
      const std::uint32_t number = made_.use(*made++, *dataset_, windows, in_tensor);
      channels.push_back({number, &made_[number].variable(), true});
    } else {
      const std::uint32_t number = use_variable(
          *stored++, spec_.tensors.empty() ? tensor.path
                                           : fmt::format("{}.variables[{}]", tensor.path, place));
      channels.push_back({number, &whole_variable(number), false});
    }
  }
  return channels;
}

void View::add_operands(const std::string& path, const Variable& variable,
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
    whole.axes[d].selected = joined_.along(variable, d);
  }
  for (const VariablePlacement& each : joined_.by_offset(variable, durations, whole)) {
    padding.add(each, variable.dims, window_dims_);
    for (VariablePlacement& part : variable.is_concatenated()
                                       ? joined_.in_parts(variable, each)
                                       : std::vector<VariablePlacement>{each}) {
      converters_.try_emplace(
          std::pair(part.tensor, part.variable),
          std::make_shared<const Converter>(variables_[part.variable]->cf, float64()));
      more_placements_.push_back(part);
      scanned_.push_back(std::move(part));
      scanned_.back().tensor = tensor;
    }
  }
}

void View::add_combination(const MadeChannel& channel, const VariablePlacement& placement,
                           std::shared_ptr<const Converter> converter, ChannelPadding& padding) {
  const auto own = static_cast<std::uint32_t>(tensors_.size() + combinations_.size());
  const auto combination = std::make_shared<const Combination>(channel, padding.tensor(), placement,
                                                               std::move(converter));
  combinations_.push_back(combination);
  for (std::size_t i = 0; i < channel.spec().of.size(); ++i) {
    const std::string path = fmt::format("{}.of[{}]", channel.spec().path, i);
    const std::uint32_t number = use_variable(channel.spec().of[i], path);
    const Variable& variable = whole_variable(number);
    add_operands(path, variable, combination->operand(i, variable, number, own), padding);
  }
}

void View::add_coarsening(const VariablePlacement& placement) {
  const TensorSpec& tensor = tensors_[placement.tensor];
  const std::string& path = tensor.coarsen.front().path;
  const Variable& variable =
      placement.made ? made_[placement.variable].variable() : whole_variable(placement.variable);
  const auto own = static_cast<std::uint32_t>(tensors_.size() + combinations_.size());
  CfDecoding reduced;  // of the blocks' values
  reduced.stored = reduced.decoded = reduced.arithmetic = float64();
  const auto coarsening = std::make_shared<Coarsening>(
      tensor.coarsen, variable.name, variable.dims, placement,
      placement.made ? made_.converter(placement.tensor, placement.variable)
                     : std::make_shared<const Converter>(
                           reduced, tensor.type, finish_of(placement.variable, tensor.type)));
  combinations_.push_back(coarsening);
  const VariablePlacement operand = coarsening->operand(placement, own);
  ChannelPadding padding(placement, variable.dims, window_dims_);
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
    made_.add_operand(own, placement.variable);
    if (made_[placement.variable].is_combined()) {
      add_combination(made_[placement.variable], operand, made_.converter(own, placement.variable),
                      padding);
    } else {
      padding.add(operand, variable.dims, window_dims_);
      more_placements_.push_back(operand);
    }
  }
  coarsening->set_padding(padding);
  keep_padding(std::move(padding));
}

bool View::has_durations(std::uint32_t tensor, const std::string& dim) const {
  if (spec_.tensors.empty()) return false;
  const auto& lists = spec_.tensors[tensor].durations;
  return std::any_of(lists.begin(), lists.end(),
                     [&](const OffsetList& each) { return each.dim == dim; });
}

void View::keep_padding(ChannelPadding padding) {
  if (padding.empty()) return;
  TensorSpec& tensor = tensors_[padding.tensor()];
  tensor.padded = true;
  tensor.pad = pad_element(tensor.type, "tensors." + tensor.name);
  channel_paddings_.push_back(std::move(padding));
}

std::vector<std::int64_t> View::add_combinations() {
  scanned_ = placements_;
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
  for (const VariablePlacement& placement : made_placements_) {
    const MadeChannel& channel = made_[placement.variable];
    if (!channel.is_combined()) {
      more_placements_.push_back(placement);
      continue;
    }
    check_edges(channel.spec().path,
                fmt::format("channels of variables, as '{}',", channel.variable().name));
    ChannelPadding padding(placement, channel.variable().dims, window_dims_);
    add_combination(channel, placement, made_.converter(placement.tensor, placement.variable),
                    padding);
    keep_padding(std::move(padding));
  }
  for (const VariablePlacement& placement : coarsened_placements_) {
    check_edges(tensors_[placement.tensor].coarsen.front().path, "coarsened tensors");
    add_coarsening(placement);
  }
  std::vector<std::int64_t> bytes;
  for (const auto& combination : combinations_) bytes.push_back(combination->sample_bytes());
  return bytes;
}

void View::add_combined(BatchPlan& plan, const Row& row) const {
  // Operands of others have higher numbers.
  for (auto c = static_cast<std::uint32_t>(combinations_.size()); c-- > 0;) {
    const std::uint32_t into = combinations_[c]->into();
    plan.combined.push_back({c, into, row.offsets[into] + combinations_[c]->base(),
                             row.offsets[tensors_.size() + c], row.starts});
  }
  for (const ChannelPadding& padding : channel_paddings_)
    padding.add_to(plan.combined_paddings, row);
}

DataType View::type_of(const TensorDefinition& tensor,
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

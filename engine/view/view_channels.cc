// What the tensors of a view are made of: variables of the store, channels that are made, and
// those that are made of variables.

#include <algorithm>

#include <fmt/format.h>

#include "engine/dataset/joined/axis_join.h"
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
  std::vector<TensorSource::Channels> channels;
  auto made = tensor.made.begin();
  auto stored = tensor.variables.begin();
  while (made != tensor.made.end() || stored != tensor.variables.end()) {
    const std::size_t place = channels.size();
    if (made != tensor.made.end() && made->place == place) {
      const std::uint32_t number = made_.use(*made++, *dataset_, windows);
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

void View::join_operand(const MadeChannel& channel, std::size_t number, const Variable& variable,
                        VariablePlacement& operand) {
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const AxisJoin* join = variable.join_along(d);
    if (join == nullptr) continue;
    const auto refuse = [&](const std::string& why) {
      return Error(ErrorCode::not_supported,
                   fmt::format("{}.of[{}]: '{}' is joined along '{}' {}, which channels made of "
                               "variables do not support",
                               channel.spec().path, number, channel.spec().of[number],
                               variable.dims[d], why));
    };
    if (join->pads()) throw refuse("with \"missing\": \"pad\"");
    if (join->ratio() > 1) throw refuse("with a ratio");
    if (operand.axes[d].by_label != nullptr) throw refuse("and the tensor's offsets are durations");
    operand.axes[d].selected = joined_.along(variable, d);
  }
}

std::vector<std::int64_t> View::add_combinations() {
  std::vector<std::int64_t> bytes;
  scanned_ = placements_;
  for (const VariablePlacement& placement : made_placements_) {
    const MadeChannel& channel = made_[placement.variable];
    if (!channel.is_combined()) {
      more_placements_.push_back(placement);
      continue;
    }
    if (std::any_of(window_dims_.begin(), window_dims_.end(),
                    [](const WindowDim& window) { return window.padded; }))
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: channels of variables, as '{}', do not go with \"edge\" of a "
                              "window",
                              channel.spec().path, channel.variable().name));
    const auto own = static_cast<std::uint32_t>(tensors_.size() + combinations_.size());
    const Combination& combination = combinations_.emplace_back(
        channel, placement, made_.converter(placement.tensor, placement.variable));
    for (std::size_t i = 0; i < channel.spec().of.size(); ++i) {
      const std::uint32_t number =
          use_variable(channel.spec().of[i], fmt::format("{}.of[{}]", channel.spec().path, i));
      const Variable& variable = whole_variable(number);
      VariablePlacement operand = combination.operand(i, variable, number, own);
      join_operand(channel, i, variable, operand);
      for (VariablePlacement& part : variable.is_concatenated()
                                         ? joined_.in_parts(variable, operand)
                                         : std::vector<VariablePlacement>{operand}) {
        converters_.try_emplace(
            std::pair(own, part.variable),
            std::make_shared<const Converter>(variables_[part.variable]->cf, float64()));
        more_placements_.push_back(part);
        scanned_.push_back(std::move(part));
        scanned_.back().tensor = placement.tensor;
      }
    }
    bytes.push_back(combination.sample_bytes());
  }
  return bytes;
}

void View::add_combined(BatchPlan& plan, const Row& row) const {
  for (std::uint32_t c = 0; c < combinations_.size(); ++c) {
    const std::uint32_t tensor = combinations_[c].tensor();
    plan.combined.push_back({c, tensor, row.offsets[tensor] + combinations_[c].base(),
                             row.offsets[tensors_.size() + c]});
  }
}

DataType View::type_of(const TensorDefinition& tensor,
                       const std::vector<TensorSource::Channels>& channels) const {
  const Variable* first = nullptr;
  bool makes = false;
  for (const TensorSource::Channels& each : channels) {
    makes = makes || each.made;
    if (first == nullptr && !each.made) first = each.variable;
  }
  if (first == nullptr) return spec_.dtype.value_or(float32());
  const DataType type = result_type(*first);
  for (const TensorSource::Channels& each : channels)
    if (!each.made && !(result_type(*each.variable) == type))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: '{}' is {} and '{}' is {}; give the view a \"dtype\" to stack them",
                      tensor.path, first->name, type.name(), each.variable->name,
                      result_type(*each.variable).name()));
  if (makes && !type.is_float())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is {}, and made channels are floats; normalize it, or give "
                            "them a tensor of their own",
                            tensor.path, first->name, type.name()));
  return type;
}

}  // namespace batchfs

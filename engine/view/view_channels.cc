// What the tensors of a view are made of: variables of the store, channels that are made, and
// those that are made of variables.

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

void View::join_operand(const std::string& path, const Variable& variable,
                        VariablePlacement& operand) {
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const AxisJoin* join = variable.join_along(d);
    if (join == nullptr) continue;
    const auto refuse = [&](const std::string& why) {
      return Error(ErrorCode::not_supported,
                   fmt::format("{}: '{}' is joined along '{}' {}, which channels made of "
                               "variables and coarsened tensors do not support",
                               path, variable.name, variable.dims[d], why));
    };
    if (join->pads()) throw refuse("with \"missing\": \"pad\"");
    if (join->ratio() > 1) throw refuse("with a ratio");
    if (operand.axes[d].by_label != nullptr) throw refuse("and the tensor's offsets are durations");
    operand.axes[d].selected = joined_.along(variable, d);
  }
}

void View::add_operand(const VariablePlacement& operand, const Variable& variable,
                       std::uint32_t tensor) {
  for (VariablePlacement& part : variable.is_concatenated()
                                     ? joined_.in_parts(variable, operand)
                                     : std::vector<VariablePlacement>{operand}) {
    converters_.try_emplace(
        std::pair(part.tensor, part.variable),
        std::make_shared<const Converter>(variables_[part.variable]->cf, float64()));
    more_placements_.push_back(part);
    scanned_.push_back(std::move(part));
    scanned_.back().tensor = tensor;
  }
}

void View::add_combination(const MadeChannel& channel, std::uint32_t tensor,
                           const VariablePlacement& placement,
                           std::shared_ptr<const Converter> converter) {
  const auto own = static_cast<std::uint32_t>(tensors_.size() + combinations_.size());
  const auto combination =
      std::make_shared<const Combination>(channel, tensor, placement, std::move(converter));
  combinations_.push_back(combination);
  for (std::size_t i = 0; i < channel.spec().of.size(); ++i) {
    const std::string path = fmt::format("{}.of[{}]", channel.spec().path, i);
    const std::uint32_t number = use_variable(channel.spec().of[i], path);
    const Variable& variable = whole_variable(number);
    VariablePlacement operand = combination->operand(i, variable, number, own);
    join_operand(path, variable, operand);
    add_operand(operand, variable, tensor);
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
  const auto coarsening = std::make_shared<const Coarsening>(
      tensor.coarsen, variable.name, variable.dims, placement,
      placement.made ? made_.converter(placement.tensor, placement.variable)
                     : std::make_shared<const Converter>(
                           reduced, tensor.type, finish_of(placement.variable, tensor.type)));
  combinations_.push_back(coarsening);
  VariablePlacement operand = coarsening->operand(placement, own);
  if (!placement.made) {
    join_operand(path, variable, operand);
    return add_operand(operand, variable, placement.tensor);
  }
  made_.add_operand(own, placement.variable);
  if (made_[placement.variable].is_combined())
    add_combination(made_[placement.variable], placement.tensor, operand,
                    made_.converter(own, placement.variable));
  else
    more_placements_.push_back(std::move(operand));
}

std::vector<std::int64_t> View::add_combinations() {
  scanned_ = placements_;
  const bool pads = std::any_of(window_dims_.begin(), window_dims_.end(),
                                [](const WindowDim& window) { return window.padded; });
  const auto check_edges = [&](const std::string& path, const std::string& what) {
    if (pads)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: {} do not go with \"edge\" of a window", path, what));
  };
  for (const VariablePlacement& placement : made_placements_) {
    const MadeChannel& channel = made_[placement.variable];
    if (!channel.is_combined()) {
      more_placements_.push_back(placement);
      continue;
    }
    check_edges(channel.spec().path,
                fmt::format("channels of variables, as '{}',", channel.variable().name));
    add_combination(channel, placement.tensor, placement,
                    made_.converter(placement.tensor, placement.variable));
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
  // Those that are operands of others have higher numbers.
  for (auto c = static_cast<std::uint32_t>(combinations_.size()); c-- > 0;) {
    const std::uint32_t into = combinations_[c]->into();
    plan.combined.push_back(
        {c, into, row.offsets[into] + combinations_[c]->base(), row.offsets[tensors_.size() + c]});
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

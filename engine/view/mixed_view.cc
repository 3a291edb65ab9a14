#include "engine/view/mixed_view.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "engine/dataset/units.h"
#include "engine/view/mix/mix_counts.h"
#include "engine/view/mixed_tensors.h"
#include "engine/view/rows/mixed_rows.h"
#include "engine/view/tensors/tensor_set.h"

namespace batchfs {

namespace {

using Views = std::vector<std::shared_ptr<const View>>;

/// The stored variables of a tensor that keep their units, by where they begin in it.
std::map<std::int64_t, const Variable*> measured(const TensorSet& set, std::uint32_t tensor) {
  std::map<std::int64_t, const Variable*> variables;
  for (const auto* all : {&set.placements, &set.coarsened_placements})
    for (const VariablePlacement& each : *all) {
      const Variable& variable = *set.variables[each.made ? 0 : each.variable];
      if (each.tensor == tensor && !each.made && !set.normalizations.contains(each.variable) &&
          variable.cf.time == CfDecoding::Time::none)
        variables.emplace(each.base, &variable);
    }
  return variables;
}

/// Throws where a channel is in other units than in the first view. Returns a warning for each that
/// has none in one of them.
std::vector<std::string> check_units(const Views& views, const std::vector<std::string>& names) {
  std::vector<std::string> warnings;
  for (std::uint32_t t = 0; t < views[0]->tensors().size(); ++t) {
    const auto first = measured(views[0]->tensor_set(), t);
    for (std::size_t i = 1; i < views.size(); ++i)
      for (const auto& [base, variable] : measured(views[i]->tensor_set(), t)) {
        const auto known = first.find(base);
        if (known == first.end()) continue;
        const std::string one = units_of(*known->second), two = units_of(*variable);
        if (are_same_units(one, two)) continue;
        const std::string& tensor = views[0]->tensors()[t].name;
        if (one.empty() || two.empty())
          warnings.push_back(
              fmt::format("'{}' in the tensor '{}' is in '{}' in '{}', and has "
                          "no units in '{}'",
                          variable->name, tensor, one.empty() ? two : one,
                          names[one.empty() ? i : 0], names[one.empty() ? 0 : i]));
        else
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("mix.{}: '{}' in the tensor '{}' is in '{}', and '{}' of '{}' "
                                  "in '{}'; convert one of them, or normalize both",
                                  names[i], variable->name, tensor, two, known->second->name,
                                  names[0], one));
      }
  }
  return warnings;
}

/// The tensors, of which all components have the same; values that are given with samples one after
/// the other.
void take_tensors(const Views& views, TensorSet& set) {
  const TensorSet& one = views[0]->tensor_set();
  set.specs = one.specs;
  set.row_shapes = one.row_shapes;
  for (std::size_t t = 0; t < set.specs.size(); ++t) {
    TensorSpec& tensor = set.specs[t];
    for (const auto& view : views)
      if (view->tensors()[t].padded) {
        tensor.padded = true;
        tensor.pad = view->tensors()[t].pad;
      }
    c_strides(tensor.shape, tensor.type.itemsize);  // throws beyond the address space
    if (tensor.values == nullptr) continue;
    auto values = std::make_shared<std::vector<std::byte>>();
    for (const auto& view : views) {
      const std::vector<std::byte>& own = *view->tensors()[t].values;
      values->insert(values->end(), own.begin(), own.end());
    }
    tensor.values = std::move(values);
  }
  set.placements = one.placements;  // for descriptions
  set.made_placements = one.made_placements;
  set.coarsened_placements = one.coarsened_placements;
}

/// Appends the variables and channels of a component, of which the first sample is known.
void take_channels(const TensorSet& own, FirstParts& first, TensorSet& set) {
  const auto tensors = static_cast<std::uint32_t>(set.specs.size());
  first.variable = static_cast<std::uint32_t>(set.variables.size());
  first.combination = static_cast<std::uint32_t>(set.combinations.size());
  first.made = set.made.append(own.made, tensors, first.combination);
  set.variables.insert(set.variables.end(), own.variables.begin(), own.variables.end());
  set.stored.insert(set.stored.end(), own.stored.begin(), own.stored.end());
  for (const auto& [use, converter] : own.converters)
    set.converters.emplace(std::pair(use.first + (use.first < tensors ? 0 : first.combination),
                                     use.second + first.variable),
                           converter);
  for (const auto& [variable, normalization] : own.normalizations)
    set.normalizations.emplace(first.variable + variable, normalization);
  set.combinations.insert(set.combinations.end(), own.combinations.begin(), own.combinations.end());
}

std::vector<FirstParts> first_samples(const Views& views) {
  std::vector<FirstParts> firsts;
  std::int64_t next = 0;
  for (const auto& view : views) {
    firsts.push_back({.sample = next});
    if (view->samples() > (INT64_C(1) << 60) - next)
      throw Error(ErrorCode::not_supported, "the mixture has more than 2^60 samples");
    next += view->samples();
  }
  return firsts;
}

}  // namespace

std::shared_ptr<const View> make_mixed_view(MixSpec spec, Views views) {
  std::vector<std::string> names;
  for (const MixComponent& component : spec.components) names.push_back(component.name);
  std::vector<std::int64_t> epochs;
  for (const auto& view : views) epochs.push_back(view->epoch_samples());
  MixSchedule schedule = schedule_of(spec, epochs);
  check_mixed_tensors(views, names);
  std::vector<std::string> warnings = check_units(views, names);
  std::vector<FirstParts> firsts = first_samples(views);
  MixedWindows windows = mix_windows(views, names);
  warnings.insert(warnings.end(), windows.warnings.begin(), windows.warnings.end());
  auto axes = std::make_shared<ViewAxes>(*views[0]->dataset(), spec.view.select);
  axes->windows = views[0]->axes().windows;
  for (std::size_t w = 0; w < axes->windows.size(); ++w)
    axes->selected.insert_or_assign(axes->windows[w].name, windows.selected[w]);
  auto set = std::make_shared<TensorSet>();
  take_tensors(views, *set);
  for (std::size_t c = 0; c < views.size(); ++c)
    take_channels(views[c]->tensor_set(), firsts[c], *set);
  const auto dataset = views[0]->dataset();
  auto view_spec = std::make_shared<const ViewSpec>(spec.view);
  auto rows = std::make_shared<const MixedRows>(std::move(spec), std::move(schedule),
                                                std::move(views), std::move(firsts),
                                                std::move(windows.first), std::move(warnings));
  return std::make_shared<const View>(
      ViewParts{dataset, std::move(view_spec), std::move(axes), std::move(set),
                std::make_shared<const std::vector<ViewCoordinate>>(std::move(windows.coordinates)),
                std::move(rows)});
}

}  // namespace batchfs

#include "engine/view/made/made_channels.h"

#include <algorithm>

#include <fmt/format.h>

namespace batchfs {

namespace {

/// Throws no_memory where the tables of this many channels would take more than a quarter of the
/// memory limit.
void check_memory(const Dataset& dataset, const std::vector<std::string>& windows,
                  std::size_t channels, const std::string& path) {
  constexpr double kBytes = 3 * sizeof(double);  // of a cell or a time
  double values = 0;                             // may be more than an integer holds
  for (const EarthAxis axis : {EarthAxis::latitude, EarthAxis::longitude})
    if (const Variable* places = find_earth_variable(dataset, axis))
      values += static_cast<double>(element_count(places->shape));
  for (const std::string& dim : windows) values += static_cast<double>(dataset.dim_size(dim));
  if (values * kBytes * static_cast<double>(channels) >
      static_cast<double>(dataset.memory_limit()) / 4)
    throw Error(ErrorCode::no_memory,
                fmt::format("{}: the tables of {} made channels take more than a quarter of "
                            "--memory; give more, or make fewer",
                            path, channels));
}

}  // namespace

std::uint32_t MadeChannels::use(MadeSpec spec, const Dataset& dataset,
                                const std::vector<std::string>& windows,
                                const std::vector<const Variable*>& stored) {
  if (spec.kind->needs_time) spec.times = value_times(dataset, spec.time_choice, windows, stored);
  for (std::uint32_t i = 0; i < channels_.size(); ++i) {
    const MadeSpec& known = channels_[i]->spec();
    if (known.name != spec.name) continue;
    if (known.same_channel(spec)) return i;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: '{}' is another channel in {}; give one of them a \"name\"",
                            spec.path, spec.name, known.path));
  }
  if (dataset.find(spec.name) != nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the store has a variable '{}'; give the channel a \"name\"",
                            spec.path, spec.name));
  if (spec.of.empty()) check_memory(dataset, windows, channels_.size() + 1, spec.path);
  channels_.push_back(std::make_shared<const MadeChannel>(std::move(spec), dataset));
  const auto add = [&](const std::vector<std::string>& dims) {
    for (const std::string& dim : dims)
      if (std::find(field_dims_.begin(), field_dims_.end(), dim) == field_dims_.end())
        field_dims_.push_back(dim);
  };
  add(windows);
  if (!channels_.back()->is_combined()) add(channels_.back()->variable().dims);
  for (const EarthAxis axis : {EarthAxis::latitude, EarthAxis::longitude})
    if (const Variable* places = find_earth_variable(dataset, axis)) add(places->dims);
  return static_cast<std::uint32_t>(channels_.size() - 1);
}

void MadeChannels::add_converter(std::uint32_t tensor, std::uint32_t number, const DataType& type,
                                 const std::optional<NormalizeSpec>& normalize,
                                 std::optional<double> nan_value, const Dataset& dataset,
                                 const std::map<std::string, Positions>& selected) {
  const MadeChannel& channel = *channels_[number];
  const Variable& variable = channel.variable();
  Finish finish;
  if (normalize && normalize->applies_to_made(variable.name, channel.spec().kind->is_scaled)) {
    auto& normalization = normalizations_[number];
    if (normalization == nullptr)
      normalization = resolve_normalization(*normalize, dataset, variable, selected);
    finish.normalization = normalization;
  }
  if (type.is_float()) finish.nan_value = nan_value;
  converters_[{tensor, number}] =
      std::make_shared<const Converter>(variable.cf, type, std::move(finish));
}

void MadeChannels::add_operand(std::uint32_t own, std::uint32_t number) {
  converters_[{own, number}] =
      std::make_shared<const Converter>(channels_[number]->variable().cf, float64());
}

std::uint32_t MadeChannels::append(const MadeChannels& other, std::uint32_t tensors,
                                   std::uint32_t shift) {
  const auto first = static_cast<std::uint32_t>(channels_.size());
  channels_.insert(channels_.end(), other.channels_.begin(), other.channels_.end());
  for (const auto& [use, converter] : other.converters_)
    converters_.emplace(
        std::pair(use.first + (use.first < tensors ? 0 : shift), first + use.second), converter);
  for (const auto& [number, normalization] : other.normalizations_)
    normalizations_.emplace(first + number, normalization);
  return first;
}

std::vector<std::string> MadeChannels::normalized() const {
  std::vector<std::string> names;
  for (const auto& [number, normalization] : normalizations_)
    names.push_back(channels_[number]->variable().name);
  return names;
}

void MadeChannels::write(const MadePart& made, const std::vector<Repeat>& repeats,
                         std::byte* tensor) const {
  const Part& part = made.part;
  channels_[made.channel]->write(
      part.source, *converters_.at({part.tensor, made.channel}), tensor + part.offset, part.strides,
      part.repeat < 0 ? nullptr : &repeats[static_cast<std::size_t>(part.repeat)]);
}

}  // namespace batchfs

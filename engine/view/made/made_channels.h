#pragma once
// The made channels of a view, each once, whatever tensors have it; and how each is converted for
// each of these tensors.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/dataset/positions.h"
#include "engine/view/batch_plan.h"
#include "engine/view/made/made_channel.h"
#include "engine/view/normalize.h"

namespace batchfs {

/// Filled while the view is made; thread-safe from then on.
class MadeChannels {
 public:
  bool empty() const { return channels_.empty(); }
  std::size_t size() const { return channels_.size(); }
  const MadeChannel& operator[](std::uint32_t number) const { return *channels_[number]; }

  /// The number of the channel, entering it. `windows`, `stored`: as value_times() has them. Throws
  /// with the spec's path where another variable or channel has the name.
  std::uint32_t use(MadeSpec spec, const Dataset& dataset, const std::vector<std::string>& windows,
                    const std::vector<const Variable*>& stored);
  /// Dimensions of the dataset that fields of time and place have: no channel is stacked along
  /// them.
  const std::vector<std::string>& field_dims() const { return field_dims_; }

  /// `normalize`, `nan_value`: of the view.
  void add_converter(std::uint32_t tensor, std::uint32_t number, const DataType& type,
                     const std::optional<NormalizeSpec>& normalize, std::optional<double> nan_value,
                     const Dataset& dataset, const std::map<std::string, Positions>& selected);
  std::shared_ptr<const Converter> converter(std::uint32_t tensor, std::uint32_t number) const {
    return converters_.at({tensor, number});
  }
  /// Adds the channels of another view, with the converters that they have there: those of numbers
  /// of tensors from `tensors` on, which are operands, are `shift` further here. Returns the number
  /// of the first.
  std::uint32_t append(const MadeChannels& other, std::uint32_t tensors, std::uint32_t shift);
  /// The channel itself, in float64, as an operand of another.
  void add_operand(std::uint32_t own, std::uint32_t number);
  /// Names of channels that are normalized.
  std::vector<std::string> normalized() const;

  /// Writes a part of a batch; `tensor` is where its tensor begins.
  void write(const MadePart& made, const std::vector<Repeat>& repeats, std::byte* tensor) const;

 private:
  std::vector<std::shared_ptr<const MadeChannel>> channels_;
  std::vector<std::string> field_dims_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const Converter>> converters_;
  std::map<std::uint32_t, std::shared_ptr<const Normalization>> normalizations_;
};

}  // namespace batchfs

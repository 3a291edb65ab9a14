#pragma once
// The tensors of a view's batches: how they lie in memory, and what fills them.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/dataset/dataset.h"
#include "engine/view/axes.h"
#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"
#include "engine/view/made/assembled_channel.h"
#include "engine/view/made/channel_padding.h"
#include "engine/view/made/made_channels.h"
#include "engine/view/normalize.h"
#include "engine/view/tensors/tensor_layout.h"

namespace batchfs {

/// Filled by TensorBuilder; immutable and thread-safe from then on. Copies share what they own.
struct TensorSet {
  std::vector<TensorSpec> specs;
  /// The shape of what a row of a batch adds to each tensor: a batch of n rows has n times its
  /// first dimension.
  std::vector<Dims> row_shapes;
  /// Bytes of a row in each tensor, followed by those of its operands in each combination.
  std::vector<std::int64_t> row_bytes;

  /// Variables the parts come from. A concatenated one has a number for each of its parts, one
  /// after the other.
  std::vector<const Variable*> variables;
  /// The array indices of the view's positions, by variable and dimension of its array.
  std::vector<std::vector<Positions>> stored;
  /// How a variable is converted for each tensor that it is in, by tensor and variable. Tensors
  /// that select the same part of a variable share one: equal addresses show it.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<const Converter>> converters;
  std::map<std::uint32_t, std::shared_ptr<const Normalization>> normalizations;  // by variable

  /// Channels that no store holds: BatchPlan::made.
  MadeChannels made;
  /// Channels that are computed when all of their operands have arrived: BatchPlan::combined. The
  /// operands of number c lie in memory of their own, sample after sample: in a plan, tensor
  /// specs.size() + c.
  std::vector<std::shared_ptr<const AssembledChannel>> combinations;
  std::vector<ChannelPadding> paddings;

  std::vector<VariablePlacement> placements;            // of variables, in tensors
  std::vector<VariablePlacement> made_placements;       // of made channels
  std::vector<VariablePlacement> coarsened_placements;  // of all channels of coarsened tensors
  std::vector<VariablePlacement> more_placements;       // that plans have beside `placements`
  std::vector<VariablePlacement> scanned;  // of all stored variables, in the tensors they are for
  /// The placements whose missing values count ("missing": "skip").
  std::vector<VariablePlacement> checked;

  /// The definition of each tensor of windows, and its channels.
  std::vector<TensorDefinition> definitions;
  std::vector<std::vector<TensorSource::Channels>> channels;

  /// The variables that `variables` and `channels` point to where the dataset does not have them:
  /// times with one decoding, parts, and by number the variables that have parts.
  std::vector<std::shared_ptr<const Variable>> settled;
  std::map<std::uint32_t, std::shared_ptr<const Variable>> whole;

  const Converter& converter(std::uint32_t tensor, std::uint32_t variable) const {
    return *converters.at({tensor, variable});
  }
  /// The variable of a number, or all of it where the number is that of its first part.
  const Variable& whole_variable(std::uint32_t number) const;
  /// The shapes of the tensors in a batch of so many rows.
  std::vector<Dims> shapes(std::int64_t rows) const;
  /// The inputs of a tensor's layout, which refer to this set and to `axes`.
  TensorSource source(std::uint32_t tensor, const ViewAxes& axes, std::int64_t batch_size) const;
};

}  // namespace batchfs

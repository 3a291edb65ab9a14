#pragma once
// Channels that are made of variables of the store: wind speeds, sums, ratios.
//
// The operands of a sample are collected in memory of their own, in float64: each a C-order array
// of the channel's dimensions, one after the other. When all chunks have arrived, they are combined
// into the tensor.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/view/geometry.h"
#include "engine/view/made/assembled_channel.h"
#include "engine/view/made/made_channel.h"

namespace batchfs {

/// One such channel in one tensor. Immutable, thread-safe.
class Combination final : public AssembledChannel {
 public:
  /// `placement` is that of the channel in `tensor`, or among the operands of another channel for
  /// it. Throws not_supported with the channel's path for numbers of "normalize" that are not one
  /// for all positions, and for operands that 63 bits do not count.
  Combination(const MadeChannel& channel, std::uint32_t tensor, const VariablePlacement& placement,
              std::shared_ptr<const Converter> converter);

  std::int64_t sample_bytes() const override;
  Target target() const override { return {extents_, strides_, repeat_}; }
  /// Where a variable goes among the operands of a sample, as operand number `number`. `own` is the
  /// number of the operands among the tensors of the plan.
  VariablePlacement operand(std::size_t number, const Variable& variable, std::uint32_t index,
                            std::uint32_t own) const;

  void write(std::byte* operands, std::byte* out, const Dims& starts) const override;

 private:
  const Made made_;
  const std::size_t count_;  // of operands
  std::vector<std::string> dims_;
  std::vector<AxisPlacement> axes_;  // of the channel, with the operands' strides
  Dims extents_, own_strides_;       // of an operand; bytes
  Dims strides_;                     // bytes in the tensor
  Repeat repeat_;
  std::shared_ptr<const Converter> converter_;
};

}  // namespace batchfs

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
#include "engine/view/made/made_channel.h"

namespace batchfs {

/// One such channel in one tensor. Immutable, thread-safe.
class Combination {
 public:
  /// `placement` is that of the channel in its tensor. Throws not_supported with the channel's path
  /// for numbers of "normalize" that are not one for all positions.
  Combination(const MadeChannel& channel, const VariablePlacement& placement,
              std::shared_ptr<const Converter> converter);

  std::uint32_t tensor() const { return tensor_; }
  std::int64_t base() const { return base_; }
  /// Bytes of a sample's operands.
  std::int64_t sample_bytes() const;
  /// Where a variable goes among the operands of a sample, as operand number `number`. `own` is the
  /// number of the operands among the tensors of the plan.
  VariablePlacement operand(std::size_t number, const Variable& variable, std::uint32_t index,
                            std::uint32_t own) const;

  /// Of one sample. `operands` is aligned for double; `out` is where the channel begins in its
  /// tensor.
  void write(const std::byte* operands, std::byte* out) const;

 private:
  const Made made_;
  const std::size_t count_;  // of operands
  const std::uint32_t tensor_;
  const std::int64_t base_;
  std::vector<std::string> dims_;
  std::vector<AxisPlacement> axes_;  // of the channel, with the operands' strides
  Dims extents_, own_strides_;       // of an operand; bytes
  Dims strides_;                     // bytes in the tensor
  Repeat repeat_;
  std::shared_ptr<const Converter> converter_;
};

}  // namespace batchfs

#pragma once
// A variable or made channel of a coarsened tensor: its window is collected as it is, and blocks of
// it become the tensor's values.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/view/coarsen/coarsen_spec.h"
#include "engine/view/geometry.h"
#include "engine/view/made/assembled_channel.h"
#include "engine/view/made/channel_padding.h"

namespace batchfs {

/// One such channel in one tensor. Immutable once the view is made, then thread-safe.
class Coarsening final : public AssembledChannel {
 public:
  /// `placement` is that of the channel in its tensor, `dims` are its dimensions. Steps of one
  /// method that follow each other are one reduction. Throws not_supported for numbers of
  /// "normalize" along a coarsened dimension, and for sums along a dimension that the channel
  /// lacks.
  Coarsening(const std::vector<CoarsenStep>& steps, const std::string& name,
             const std::vector<std::string>& dims, const VariablePlacement& placement,
             std::shared_ptr<const Converter> converter);

  /// The placement of the channel itself among the operands, whose number in a plan is `own`.
  VariablePlacement operand(const VariablePlacement& placement, std::uint32_t own) const;

  /// Makes known which positions are padding, before the first write(): padding is in no block.
  void set_padding(const ChannelPadding& padding) { padding_ = padding; }

  std::int64_t sample_bytes() const override;
  Target target() const override { return {coarse_, strides_, repeat_}; }
  void write(std::byte* operands, std::byte* out, const Dims& starts) const override;

  /// Does "normalize" have numbers of its own along dimension `d` of the channel?
  bool has_numbers_along(std::size_t d) const;

 private:
  struct Reduction {
    CoarsenMethod how;
    Dims factors;  // per dimension of the channel
  };

  std::vector<Reduction> reductions_;  // one after the other
  std::optional<ChannelPadding> padding_;
  Dims fine_, coarse_;  // positions per dimension
  Dims strides_;        // bytes in the tensor
  Repeat repeat_;
  /// Dimensions along which "normalize" has numbers of their own, and how they lie in the array.
  std::vector<std::pair<std::size_t, AxisPlacement>> by_position_;
  std::shared_ptr<const Converter> converter_;
};

}  // namespace batchfs

#pragma once
// Padding of channels that are computed: where one of the values that an element is of lies outside
// of the selection, or of its source, the element is padding. An element of a coarsened tensor is
// padding where all of its block is; else it is of the values inside.

#include <string>
#include <utility>
#include <vector>

#include "engine/view/batch_plan.h"
#include "engine/view/geometry.h"

namespace batchfs {

/// The padding of one channel in one tensor. Filled while the view is made; thread-safe afterwards.
class ChannelPadding {
 public:
  /// `channel` is its placement in the tensor, `dims` are its dimensions. `windows` are the view's.
  ChannelPadding(const VariablePlacement& channel, std::vector<std::string> dims,
                 const std::vector<WindowDim>& windows);

  /// Adds one of the placements that the channel is computed from. Its dimensions, `dims`, are some
  /// of the channel's.
  void add(const VariablePlacement& operand, const std::vector<std::string>& dims,
           const std::vector<WindowDim>& windows);

  /// True if no element is ever padding.
  bool empty() const { return operands_.empty(); }
  std::uint32_t tensor() const { return channel_.tensor; }

  /// For each position along dimension `d` of the channel, before it is coarsened: is it padding in the
  /// sample whose windows begin at `starts`? Empty where none ever is.
  std::vector<bool> padded_along(std::size_t d, const Dims& starts) const;

  /// The padding of one sample.
  void add_to(std::vector<Padding>& paddings, const Row& row) const;

 private:
  /// Dimensions of the tensor: first the channel's, then those that it lacks.
  std::size_t dimensions() const { return channel_.axes.size() + channel_.repeated.size(); }
  const AxisPlacement& axis(std::size_t d) const {
    return d < channel_.axes.size() ? channel_.axes[d]
                                    : channel_.repeated[d - channel_.axes.size()];
  }
  void add_axis(std::size_t d, const AxisPlacement& axis, const std::vector<WindowDim>& windows);

  VariablePlacement channel_;
  std::vector<std::string> dims_;
  /// The operands that may be padding, by dimension.
  std::vector<std::pair<std::size_t, AxisPlacement>> operands_;
};

}  // namespace batchfs

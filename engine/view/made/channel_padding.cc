#include "engine/view/made/channel_padding.h"

#include <algorithm>

namespace batchfs {

namespace {

/// Marks the positions of the tensor, not yet coarsened, at which an operand has no value.
void mark_padding(const AxisPlacement& axis, const Dims& starts, std::vector<bool>& is_padding) {
  const Positions& positions = axis.gaps();
  const std::int64_t length = positions.size();
  const auto mark = [&](std::int64_t place, std::int64_t position) {
    if (position >= length || positions[position] == Positions::kNone)
      is_padding[static_cast<std::size_t>(axis.before + place)] = true;
  };
  for (std::int64_t i = 0; axis.window < 0 && i < length; ++i) mark(i, i);
  std::int64_t place = 0;
  for (std::size_t o = 0; axis.window >= 0 && o < axis.offsets.size(); ++o) {
    const std::int64_t first = axis.first(o, starts[static_cast<std::size_t>(axis.window)]);
    for (std::int64_t k = 0; k < axis.size; ++k, ++place)
      mark(place, axis.wrap ? (((first + k) % length) + length) % length : first + k);
  }
}

}  // namespace

ChannelPadding::ChannelPadding(const VariablePlacement& channel, std::vector<std::string> dims,
                               const std::vector<WindowDim>& windows)
    : channel_(channel), dims_(std::move(dims)) {
  for (std::size_t d = channel_.axes.size(); d < dimensions(); ++d) add_axis(d, axis(d), windows);
}

void ChannelPadding::add(const VariablePlacement& operand, const std::vector<std::string>& dims,
                         const std::vector<WindowDim>& windows) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto place = std::find(dims_.begin(), dims_.end(), dims[d]) - dims_.begin();
    add_axis(static_cast<std::size_t>(place), operand.axes[d], windows);
  }
}

void ChannelPadding::add_axis(std::size_t d, const AxisPlacement& axis,
                              const std::vector<WindowDim>& windows) {
  const bool passes_end = axis.window >= 0 && windows[static_cast<std::size_t>(axis.window)].padded;
  if (passes_end || axis.gaps().has_gaps()) operands_.emplace_back(d, axis);
}

std::vector<bool> ChannelPadding::padded_along(std::size_t d, const Dims& starts) const {
  std::vector<bool> is_padding;
  for (const auto& [own, operand] : operands_) {
    if (own != d) continue;
    is_padding.resize(static_cast<std::size_t>(axis(d).positions()));
    mark_padding(operand, starts, is_padding);
  }
  return is_padding;
}

void ChannelPadding::add_to(std::vector<Padding>& paddings, const Row& row) const {
  for (std::size_t d = 0; d < dimensions(); ++d) {
    const std::vector<bool> is_padding = padded_along(d, row.starts);
    if (is_padding.empty()) continue;
    // Across the whole of the other dimensions: overlaps are padded twice.
    const auto coarse = static_cast<std::ptrdiff_t>(axis(d).coarse);
    const auto is_block_padding = [&](std::int64_t i) {
      const auto first = is_padding.begin() + static_cast<std::ptrdiff_t>(i) * coarse;
      return std::find(first, first + coarse, false) == first + coarse;
    };
    for (std::int64_t i = 0; i < axis(d).extent(); ++i) {
      if (!is_block_padding(i)) continue;
      Padding padding{channel_.tensor, row.offsets[channel_.tensor] + channel_.base, {}, {}};
      for (std::size_t k = 0; k < dimensions(); ++k) {
        padding.shape.push_back(axis(k).extent());
        padding.strides.push_back(axis(k).stride);
      }
      const std::int64_t first = i;
      while (i + 1 < axis(d).extent() && is_block_padding(i + 1)) ++i;
      padding.shape[d] = i + 1 - first;
      padding.offset += first * axis(d).stride;
      paddings.push_back(padding);
    }
  }
}

}  // namespace batchfs

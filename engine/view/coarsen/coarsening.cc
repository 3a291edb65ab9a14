#include "engine/view/coarsen/coarsening.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/coarsen/blocks.h"

namespace batchfs {

namespace {

/// The array index of each position of a sample's window; any index where it is padding.
std::vector<std::int64_t> indices_of(const AxisPlacement& axis, const Dims& starts) {
  std::vector<std::int64_t> indices;
  const std::int64_t length = axis.selected.size();
  const auto add = [&](std::int64_t position) {
    indices.push_back(position < length ? std::max<std::int64_t>(0, axis.selected[position]) : 0);
  };
  for (std::int64_t i = 0; axis.window < 0 && i < length; ++i) add(i);
  for (std::size_t o = 0; axis.window >= 0 && o < axis.offsets.size(); ++o) {
    const std::int64_t first = axis.first(o, starts[static_cast<std::size_t>(axis.window)]);
    for (std::int64_t k = first; k < first + axis.size; ++k)
      add(axis.wrap ? ((k % length) + length) % length : k);
  }
  return indices;
}

}  // namespace

Coarsening::Coarsening(const std::vector<CoarsenStep>& steps, const std::string& name,
                       const std::vector<std::string>& dims, const VariablePlacement& placement,
                       std::shared_ptr<const Converter> converter)
    : AssembledChannel(placement.tensor, placement.tensor, placement.base),
      converter_(std::move(converter)) {
  for (const AxisPlacement& axis : placement.axes) {
    fine_.push_back(axis.positions());
    coarse_.push_back(axis.extent());
    strides_.push_back(axis.stride);
  }
  for (const AxisPlacement& axis : placement.repeated) {
    repeat_.counts.push_back(axis.extent());
    repeat_.strides.push_back(axis.stride);
  }
  for (const CoarsenStep& step : steps) {
    const auto d =
        static_cast<std::size_t>(std::find(dims.begin(), dims.end(), step.dim) - dims.begin());
    if (d == dims.size()) {
      if (step.how == CoarsenMethod::sum)
        throw Error(ErrorCode::not_supported,
                    fmt::format("{}: '{}' lacks the dimension '{}' and has no sums along it; give "
                                "it a tensor of its own",
                                step.path, name, step.dim));
      continue;  // of equal values
    }
    if (reductions_.empty() || reductions_.back().how != step.how)
      reductions_.push_back({step.how, Dims(dims.size(), 1)});
    reductions_.back().factors[d] = step.size;
  }
  if (!converter_->by_position()) return;
  const Dims& numbers = converter_->finish().normalization->strides;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d >= numbers.size() || numbers[d] == 0) continue;
    const AxisPlacement& axis = placement.axes[d];
    if (axis.coarse > 1)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: '{}' is normalized with a number for each position along '{}', "
                              "and a block of it is of several",
                              steps.front().path, name, dims[d]));
    by_position_.emplace_back(d, axis);
  }
}

std::int64_t Coarsening::sample_bytes() const {
  return static_cast<std::int64_t>(sizeof(double)) * element_count(fine_);
}

VariablePlacement Coarsening::operand(const VariablePlacement& placement, std::uint32_t own) const {
  VariablePlacement result = placement;
  result.tensor = own;
  result.base = 0;
  result.repeated.clear();
  const Dims strides = c_strides(fine_, sizeof(double));
  for (std::size_t d = 0; d < result.axes.size(); ++d) {
    result.axes[d].stride = strides[d];
    result.axes[d].coarse = 1;
  }
  return result;
}

bool Coarsening::has_numbers_along(std::size_t d) const {
  return std::any_of(by_position_.begin(), by_position_.end(),
                     [d](const auto& each) { return each.first == d; });
}

void Coarsening::write(std::byte* operands, std::byte* out, const Dims& starts) const {
  auto* const values = reinterpret_cast<double*>(operands);
  Dims shape = fine_;
  PaddedPositions padded(fine_.size());
  for (std::size_t d = 0; padding_ && d < padded.size(); ++d)
    padded[d] = padding_->padded_along(d, starts);
  for (const Reduction& reduction : reductions_)
    shape = reduce_blocks(values, shape, reduction.factors, reduction.how, padded);
  if (element_count(coarse_) == 0) return;
  const Dims from = c_strides(coarse_, sizeof(double));
  // One box for each position with its own numbers.
  Dims box = coarse_, at(by_position_.size());
  std::vector<std::vector<std::int64_t>> indices;
  for (const auto& [d, axis] : by_position_) {
    box[d] = 1;
    indices.push_back(indices_of(axis, starts));
  }
  for (;;) {
    Dims origin(coarse_.size());
    std::int64_t source = 0, target = 0;
    for (std::size_t i = 0; i < by_position_.size(); ++i) {
      const std::size_t d = by_position_[i].first;
      origin[d] = indices[i][static_cast<std::size_t>(at[i])];
      source += at[i] * from[d];
      target += at[i] * strides_[d];
    }
    converter_->convert(box, operands + source, from, out + target, strides_, origin);
    std::size_t i = by_position_.size();
    while (i > 0 && at[i - 1] + 1 == coarse_[by_position_[i - 1].first]) at[--i] = 0;
    if (i == 0) break;
    ++at[i - 1];
  }
  if (!repeat_.counts.empty())
    repeat_strided(coarse_, converter_->result_itemsize(), out, strides_, repeat_);
}

}  // namespace batchfs

#include "engine/view/coarsen/coarsening.h"

#include <fmt/format.h>

#include "engine/view/coarsen/blocks.h"

namespace batchfs {

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
    if (axis.window >= 0 || axis.coarse > 1)
      throw Error(ErrorCode::not_supported,
                  fmt::format("{}: '{}' is normalized with a number for each position along '{}', "
                              "which coarsened tensors support only along dimensions without "
                              "windows and blocks",
                              steps.front().path, name, dims[d]));
    by_position_.emplace_back(d, axis.selected);
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

void Coarsening::write(std::byte* operands, std::byte* out) const {
  auto* const values = reinterpret_cast<double*>(operands);
  Dims shape = fine_;
  for (const Reduction& reduction : reductions_)
    shape = reduce_blocks(values, shape, reduction.factors, reduction.how);
  if (element_count(coarse_) == 0) return;
  const Dims from = c_strides(coarse_, sizeof(double));
  // One box for each position with its own numbers.
  Dims box = coarse_, at(by_position_.size());
  for (const auto& [d, selected] : by_position_) box[d] = 1;
  for (;;) {
    Dims origin(coarse_.size());
    std::int64_t source = 0, target = 0;
    for (std::size_t i = 0; i < by_position_.size(); ++i) {
      const auto& [d, selected] = by_position_[i];
      origin[d] = selected[at[i]];
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

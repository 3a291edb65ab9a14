#include "engine/view/made/combination.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace batchfs {

namespace {

constexpr std::int64_t kCombinedAtOnce = 512;  // values that are combined at a time

/// Like std::hypot, which takes ten times as long.
double hypotenuse(double a, double b) {
  const double root = std::sqrt(a * a + b * b);
  return root > 1e-150 && root < 1e150 ? root : std::hypot(a, b);
}

/// values[i] = values[i] op operand[i * step].
void combine(Made made, std::int64_t count, double* values, const double* operand,
             std::int64_t step) {
  const auto loop = [&](auto of) {
    if (step == 1)
      for (std::int64_t i = 0; i < count; ++i) values[i] = of(values[i], operand[i]);
    else
      for (std::int64_t i = 0; i < count; ++i) values[i] = of(values[i], operand[i * step]);
  };
  switch (made) {
    case Made::hypot:
      return loop(hypotenuse);
    case Made::sum:
      return loop([](double a, double b) { return a + b; });
    case Made::difference:
      return loop([](double a, double b) { return a - b; });
    case Made::product:
      return loop([](double a, double b) { return a * b; });
    default:
      return loop([](double a, double b) { return a / b; });
  }
}

}  // namespace

Combination::Combination(const MadeChannel& channel, std::uint32_t tensor,
                         const VariablePlacement& placement,
                         std::shared_ptr<const Converter> converter)
    : AssembledChannel(tensor, placement.tensor, placement.base),
      made_(channel.spec().kind->made),
      count_(channel.spec().of.size()),
      dims_(channel.variable().dims),
      axes_(placement.axes),
      converter_(std::move(converter)) {
  if (converter_->by_position())
    throw Error(ErrorCode::not_supported,
                fmt::format("{}: '{}' is made of variables, and is normalized with one number for "
                            "all positions; leave it out: \"except\": [\"{}\"]",
                            channel.spec().path, channel.variable().name, channel.variable().name));
  for (const AxisPlacement& axis : axes_) {
    extents_.push_back(axis.extent());
    strides_.push_back(axis.stride);
  }
  own_strides_ = c_strides(extents_, sizeof(double));
  // Throws where the operands together are too large.
  c_strides({static_cast<std::int64_t>(count_), element_count(extents_)}, sizeof(double));
  for (std::size_t d = 0; d < axes_.size(); ++d) axes_[d].stride = own_strides_[d];
  for (const AxisPlacement& axis : placement.repeated) {
    repeat_.counts.push_back(axis.extent());
    repeat_.strides.push_back(axis.stride);
  }
}

std::int64_t Combination::sample_bytes() const {
  return static_cast<std::int64_t>(count_ * sizeof(double)) * element_count(extents_);
}

VariablePlacement Combination::operand(std::size_t number, const Variable& variable,
                                       std::uint32_t index, std::uint32_t own) const {
  VariablePlacement placement;
  placement.tensor = own;
  placement.variable = index;
  placement.base = static_cast<std::int64_t>(number * sizeof(double)) * element_count(extents_);
  const auto place_of = [&](const std::string& dim) {
    return std::find(dims_.begin(), dims_.end(), dim) - dims_.begin();
  };
  for (const std::string& dim : variable.dims)
    placement.axes.push_back(axes_[static_cast<std::size_t>(place_of(dim))]);
  for (std::size_t d = 0; d < dims_.size(); ++d)
    if (std::find(variable.dims.begin(), variable.dims.end(), dims_[d]) == variable.dims.end())
      placement.repeat_along(axes_[d]);
  return placement;
}

void Combination::write(std::byte* operands, std::byte* out, const Dims&) const {
  const std::int64_t elements = element_count(extents_);
  if (elements == 0) return;
  const auto size = static_cast<std::int64_t>(converter_->result_itemsize());
  for_each_run(extents_, sizeof(double), own_strides_, size, strides_,
               [&](std::int64_t count, std::int64_t from, std::int64_t from_stride, std::int64_t to,
                   std::int64_t to_stride) {
                 std::array<double, kCombinedAtOnce> values;
                 for (std::int64_t done = 0; done < count; done += kCombinedAtOnce) {
                   const std::int64_t n = std::min(kCombinedAtOnce, count - done);
                   const std::int64_t first = from + done * from_stride, step = from_stride / 8;
                   const auto operand = [&](std::size_t number) {
                     return reinterpret_cast<const double*>(
                         operands + static_cast<std::int64_t>(number) * elements * 8 + first);
                   };
                   for (std::int64_t i = 0; i < n; ++i)
                     values[static_cast<std::size_t>(i)] = operand(0)[i * step];
                   for (std::size_t k = 1; k < count_; ++k)
                     combine(made_, n, values.data(), operand(k), step);
                   converter_->convert({n}, reinterpret_cast<const std::byte*>(values.data()), {8},
                                       out + to + done * to_stride, {to_stride}, {0});
                 }
               });
  if (!repeat_.counts.empty())
    repeat_strided(extents_, static_cast<std::size_t>(size), out, strides_, repeat_);
}

}  // namespace batchfs

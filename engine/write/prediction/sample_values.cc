#include "engine/write/prediction/sample_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace batchfs {

namespace {

std::string shape_text(const Dims& shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "),
                     shape.size() == 1 ? "," : "");
}

/// Dimensions of length 1 have the stride 0.
Dims broadcast_strides(const Dims& shape) {
  Dims strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d])
    strides[d] = shape[d] == 1 ? 0 : stride;
  return strides;
}

}  // namespace

SampleValues::SampleValues(const Placement& placement, const PredictedValues& values,
                           std::size_t samples)
    : placement_(placement), values_(values), first_(values.data) {
  check_shape(samples);
  check_type();
  const PredictedArray& array = placement.array();
  Dims lengths, strides;  // of the dimensions that `order` names
  if (array.stack) {
    const auto dimension = static_cast<std::size_t>(array.stack->dimension);
    const std::int64_t stride = values.strides[dimension];
    first_ += array.stack->first * stride;
    lengths = array.stack->lengths;
    strides = c_strides(lengths, 1);
    for (std::int64_t& one : strides) one *= stride;
  }
  for (std::size_t d = 1; d < values.shape.size(); ++d) {
    if (array.stack && d == static_cast<std::size_t>(array.stack->dimension)) continue;
    lengths.push_back(values.shape[d]);
    strides.push_back(values.strides[d]);
  }
  for (const int d : array.order) {
    shape_.push_back(d < 0 ? 1 : lengths[static_cast<std::size_t>(d)]);
    strides_.push_back(d < 0 ? 0 : strides[static_cast<std::size_t>(d)]);
  }
  if (array.scale != nullptr) scale_strides_ = broadcast_strides(array.scale->shape());
  cast_ = cast_row(values.type, array.type, array.scale != nullptr);
}

void SampleValues::check_shape(std::size_t samples) const {
  const PredictedArray& array = placement_.array();
  Dims expected{static_cast<std::int64_t>(samples)};
  for (const std::int64_t length : array.tensor_shape) expected.push_back(length);
  bool fits = values_.shape.size() == expected.size() &&
              values_.strides.size() == expected.size() && values_.shape[0] == expected[0];
  // Only where windows at the edge are shorter may the values be.
  std::vector<bool> is_partial(expected.size());
  std::vector<std::size_t> own;  // the tensor's dimension, by its number in `order`
  if (array.stack) own.resize(array.stack->lengths.size(), 0);
  for (std::size_t d = 1; d < expected.size(); ++d)
    if (!array.stack || d != static_cast<std::size_t>(array.stack->dimension)) own.push_back(d);
  for (std::size_t a = 0; a < array.axes.size(); ++a)
    if (array.order[a] >= 0 && array.axes[a].partial)
      is_partial[own[static_cast<std::size_t>(array.order[a])]] = true;
  for (std::size_t d = 1; fits && d < expected.size(); ++d)
    fits = values_.shape[d] == expected[d] ||
           (is_partial[d] && values_.shape[d] > 0 && values_.shape[d] < expected[d]);
  if (!fits)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the prediction for '{}' has the shape {}, and the batch's is {} ({})",
                            array.tensor, shape_text(values_.shape), shape_text(expected),
                            fmt::join(array.tensor_dims, ", ")));
}

void SampleValues::check_type() const {
  const PredictedArray& array = placement_.array();
  const bool becomes_float = array.scale != nullptr;
  const DataType from =
      becomes_float && !values_.type.is_float() && can_cast(values_.type, float64()) ? float64()
                                                                                     : values_.type;
  if (!can_cast(from, array.type))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the prediction for '{}' is of the type {}, and '{}' of {}: convert "
                            "it, or pass dtype= to create()",
                            array.tensor, values_.type.name(), array.name, array.type.name()));
}

SampleValues::Numbers SampleValues::numbers(std::size_t row) const {
  Numbers numbers;
  if (const auto& scale = placement_.array().scale) {
    numbers.multiply.resize(static_cast<std::size_t>(element_count(scale->shape())));
    numbers.add.resize(numbers.multiply.size());
    scale->numbers(row, numbers.multiply.data(), numbers.add.data());
  }
  return numbers;
}

Buffer SampleValues::cut(const std::vector<SampleBox>& boxes, std::size_t sample,
                         const Numbers& numbers) const {
  const auto elements = static_cast<std::size_t>(Placement::elements(boxes));
  Buffer result(elements * placement_.itemsize());
  const std::byte* const from = first_ + static_cast<std::int64_t>(sample) * values_.strides[0];
  std::byte* to = result.data();
  for (const SampleBox& box : boxes) {
    for (std::size_t d = 0; d < box.shape.size(); ++d)
      if (box.source[d] + box.shape[d] > shape_[d])
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the prediction for '{}' has {} positions along '{}', and a sample "
                                "in it has {}",
                                placement_.array().tensor, shape_[d],
                                placement_.array().axes[d].name, box.source[d] + box.shape[d]));
    cut_box(box, from, numbers, to);
    to += static_cast<std::size_t>(element_count(box.shape)) * placement_.itemsize();
  }
  return result;
}

void SampleValues::cut_box(const SampleBox& box, const std::byte* sample, const Numbers& numbers,
                           std::byte* result) const {
  const auto itemsize = static_cast<std::int64_t>(placement_.itemsize());
  const Dims strides = c_strides(box.shape, itemsize);
  for (std::size_t d = 0; d < box.shape.size(); ++d) sample += box.source[d] * strides_[d];
  if (placement_.array().scale == nullptr) {
    // Runs are contiguous in the result: it is packed.
    for_each_run(
        box.shape, values_.type.itemsize, strides_, itemsize, strides,
        [&](std::int64_t count, std::int64_t from, std::int64_t from_stride, std::int64_t to,
            std::int64_t) { cast_(count, sample + from, from_stride, {}, result + to); });
    return;
  }
  // Row by row: the numbers have strides of their own.
  const std::size_t dims = box.shape.size();
  const std::int64_t length = dims == 0 ? 1 : box.shape.back();
  const std::int64_t rows = length == 0 ? 0 : element_count(box.shape) / length;
  Dims at(dims);
  for (std::int64_t r = 0; r < rows; ++r, result += length * itemsize) {
    std::int64_t from = 0, entry = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      from += at[d] * strides_[d];
      entry += (box.source[d] + at[d]) * scale_strides_[d];
    }
    const CastScale scale{numbers.multiply.data() + entry, numbers.add.data() + entry,
                          dims == 0 ? 0 : scale_strides_[dims - 1]};
    cast_(length, sample + from, dims == 0 ? 0 : strides_[dims - 1], scale, result);
    for (std::size_t d = dims; d-- > 1;) {
      if (++at[d - 1] < box.shape[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

}  // namespace batchfs

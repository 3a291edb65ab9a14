#include "engine/write/prediction/placement.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "engine/write/prediction/prediction_chunks.h"
#include "engine/write/region_boxes.h"

namespace batchfs {

namespace {

constexpr std::int64_t kMaxObjects = std::int64_t{1} << 26;

/// The starts of all samples along a dimension of the view, each once, ascending.
std::vector<std::int64_t> distinct_starts(const PredictionSamples& samples, int dim) {
  std::vector<std::int64_t> starts;
  if (dim < 0) return starts;
  for (std::size_t row = 0; row < samples.size(); ++row) starts.push_back(samples.start(row, dim));
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

[[noreturn]] void contradicts(const PredictedArray& array, const char* what) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the array '{}' has {} that do not fit the tensor '{}'", array.name, what,
                          array.tensor));
}

/// The lengths of a sample's values along the dimensions that `order` names.
Dims value_shape(const PredictedArray& array) {
  Dims shape;
  if (array.stack) {
    const StackSlice& stack = *array.stack;
    const auto dimension = static_cast<std::size_t>(stack.dimension);
    if (stack.dimension < 1 || dimension > array.tensor_shape.size() || stack.first < 0 ||
        stack.last < stack.first || stack.last > array.tensor_shape[dimension - 1] ||
        element_count(stack.lengths) != stack.last - stack.first)
      contradicts(array, "channels");
    shape = stack.lengths;
  }
  for (std::size_t d = 0; d < array.tensor_shape.size(); ++d)
    if (!array.stack || d + 1 != static_cast<std::size_t>(array.stack->dimension))
      shape.push_back(array.tensor_shape[d]);
  return shape;
}

void check(const PredictedArray& array, const PredictionSamples& samples) {
  if (array.name.empty() || array.name.find('/') != std::string::npos || array.name == "." ||
      array.name == ".." || array.name.starts_with(".batchfs") || array.name == "zarr.json" ||
      array.name.find('\0') != std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an array cannot be called '{}' here; pass name=", array.name));
  for (const PredictedAxis& axis : array.axes) {
    if (axis.name == array.name)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("an array cannot be called '{}' here; pass name=", array.name));
    if (axis.window >= static_cast<int>(samples.dims.size())) contradicts(array, "windows");
  }
  const Dims values = value_shape(array);
  std::vector<bool> used(values.size());
  if (array.order.size() != array.axes.size()) contradicts(array, "axes");
  for (std::size_t a = 0; a < array.axes.size(); ++a) {
    const std::int64_t extent = array.axes[a].extent();
    const int d = array.order[a];
    if (d < 0) {
      if (extent != 1) contradicts(array, "axes");
      continue;
    }
    const auto at = static_cast<std::size_t>(d);
    if (at >= values.size() || used[at] || (!array.axes[a].partial && values[at] != extent))
      contradicts(array, "axes");
    used[at] = true;
  }
  if (!std::all_of(used.begin(), used.end(), [](bool one) { return one; }))
    contradicts(array, "axes");
  if (array.scale != nullptr) {
    const PredictedScale& scale = *array.scale;
    bool fits = scale.shape().size() == array.axes.size();
    for (std::size_t d = 0; fits && d < scale.shape().size(); ++d)
      fits = scale.shape()[d] == 1 || scale.shape()[d] == array.axes[d].extent();
    if (!fits) contradicts(array, "numbers of a normalization");
  }
}

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<std::byte> fill_of(const DataType& type) {
  if (type.kind != Kind::floating) return std::vector<std::byte>(type.itemsize);
  if (type.itemsize == 2) return bytes_of(std::uint16_t{0x7e00});
  if (type.itemsize == 4) return bytes_of(std::numeric_limits<float>::quiet_NaN());
  return bytes_of(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

Placement::Placement(PredictedArray array, const PredictionSamples& samples,
                     const PredictionOptions& options)
    : array_(std::move(array)), fill_(fill_of(array_.type)) {
  check(array_, samples);
  const DataType& type = array_.type;
  if (!type.is_integer() && type.kind != Kind::boolean && type.kind != Kind::floating)
    throw Error(ErrorCode::not_supported,
                fmt::format("predictions of the type {} cannot be written; pass dtype= with a type "
                            "of numbers",
                            type.name()));
  for (const PredictedAxis& axis : array_.axes)
    axes_.emplace_back(axis, distinct_starts(samples, axis.window), options.overlap,
                       samples.is_grid);
  check_sharing(samples, options.overlap);
  const bool makes_means = options.overlap == Overlap::mean || options.overlap == Overlap::cosine;
  if (makes_means && type.kind != Kind::floating)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("overlap=\"{}\" makes means, and '{}' has values of the type {}: pass "
                            "overlap=\"trim\"",
                            overlap_name(options.overlap), name(), type.name()));
  chunks_ = prediction_chunks(array_, options);
  double count = 1;
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    grid_.push_back(ceil_div(axes_[d].length(), chunks_.object[d]));
    count *= static_cast<double>(grid_.back());
  }
  if (count > static_cast<double>(kMaxObjects))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("'{}' would have {:.0f} chunks; pass larger ones with chunks=", name(), count));
  for (std::size_t d = 0; d < axes_.size(); ++d) axes_[d].set_step(chunks_.object[d]);
  expected_.resize(static_cast<std::size_t>(element_count(grid_)));
  for (std::size_t row = 0; row < samples.size(); ++row)
    each_object(samples.starts.data() + row * samples.dims.size(),
                [this](std::int64_t number) { ++expected_[static_cast<std::size_t>(number)]; });
}

void Placement::check_sharing(const PredictionSamples& samples, Overlap overlap) const {
  std::string collides, overlaps;
  for (std::size_t w = samples.dims.size(); w-- > 0;) {
    const int dim = static_cast<int>(w);
    const bool has_axis =
        std::any_of(array_.axes.begin(), array_.axes.end(),
                    [&](const PredictedAxis& axis) { return axis.window == dim; });
    if (!has_axis && distinct_starts(samples, dim).size() > 1) collides = samples.dims[w];
  }
  for (const AxisWindows& axis : axes_) {
    if (axis.sharing() == AxisWindows::Sharing::collide && collides.empty())
      collides = axis.axis().name;
    if (axis.sharing() == AxisWindows::Sharing::overlap && overlaps.empty())
      overlaps = axis.axis().name;
  }
  if (!collides.empty() && overlap != Overlap::last)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("several samples have values for the same elements of '{}', along "
                            "'{}': pass overlap=\"last\" to keep those of the last sample, or "
                            "time=\"lead\" for forecasts of several steps",
                            name(), collides));
  if (!overlaps.empty() && overlap == Overlap::error)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("windows overlap along '{}': pass overlap=\"trim\", \"mean\", "
                            "\"cosine\" or \"last\" to say which values '{}' gets there",
                            overlaps, name()));
}

Dims Placement::shape() const {
  Dims shape;
  for (const AxisWindows& axis : axes_) shape.push_back(axis.length());
  return shape;
}

bool Placement::blends() const {
  return std::any_of(axes_.begin(), axes_.end(),
                     [](const AxisWindows& axis) { return axis.is_weighted(); });
}

Dims Placement::object_index(std::int64_t number) const {
  return position_in(whole_box(grid_), number);
}

std::int64_t Placement::object_number(const Dims& index) const {
  return number_in(whole_box(grid_), index);
}

Box Placement::region(std::int64_t number) const {
  Box region{object_index(number), Dims(axes_.size())};
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    region.start[d] *= axes_[d].step();
    region.shape[d] = std::min(axes_[d].step(), axes_[d].length() - region.start[d]);
  }
  return region;
}

std::int64_t Placement::start_along(std::size_t axis, const std::int64_t* starts) const {
  const int window = array_.axes[axis].window;
  return window < 0 ? 0 : starts[window];
}

void Placement::each_object(const std::int64_t* starts,
                            const std::function<void(std::int64_t number)>& call) const {
  std::array<const std::vector<std::int64_t>*, kMaxDims> along{};
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    along[d] = &axes_[d].objects_of(start_along(d, starts));
    if (along[d]->empty()) return;
  }
  std::array<std::size_t, kMaxDims> at{};
  for (;;) {
    std::int64_t number = 0;
    for (std::size_t d = 0; d < axes_.size(); ++d) number = number * grid_[d] + (*along[d])[at[d]];
    call(number);
    std::size_t d = axes_.size();
    while (d > 0 && ++at[d - 1] == along[d - 1]->size()) at[--d] = 0;
    if (d == 0) return;
  }
}

std::vector<std::int64_t> Placement::objects_of(const std::int64_t* starts) const {
  std::vector<std::int64_t> numbers;
  each_object(starts, [&numbers](std::int64_t number) { numbers.push_back(number); });
  return numbers;
}

std::vector<SampleBox> Placement::boxes(std::int64_t number, const std::int64_t* starts) const {
  const Dims index = object_index(number);
  std::vector<SampleBox> boxes(1);
  for (std::size_t d = 0; d < axes_.size(); ++d) {
    const std::int64_t start = start_along(d, starts);
    const double* const weights = axes_[d].weights(start);
    const std::vector<AxisPiece> pieces = axes_[d].pieces_in(index[d], start);
    std::vector<SampleBox> longer;
    for (const SampleBox& box : boxes)
      for (const AxisPiece& piece : pieces) {
        SampleBox& one = longer.emplace_back(box);
        one.source.push_back(piece.source);
        one.target.push_back(piece.target);
        one.shape.push_back(piece.count);
        one.weights.push_back(weights == nullptr ? nullptr : weights + piece.source);
      }
    boxes = std::move(longer);
  }
  return boxes;
}

std::int64_t Placement::elements(const std::vector<SampleBox>& boxes) {
  std::int64_t sum = 0;
  for (const SampleBox& box : boxes) sum += element_count(box.shape);
  return sum;
}

}  // namespace batchfs

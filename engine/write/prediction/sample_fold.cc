#include "engine/write/prediction/sample_fold.h"

#include <cstring>
#include <limits>
#include <vector>

#include "engine/write/blend.h"
#include "engine/write/prediction/value_cast.h"

namespace batchfs {

namespace {

struct PlacedBox {
  SampleBox box;
  const std::byte* values;  // in C order
};

/// Calls `run(offset in the region, offset in the box, indices in the box but the last)` for each
/// row of a box. In elements.
template <class Run>
void for_each_row(const SampleBox& box, const Dims& region, Run&& run) {
  const std::size_t dims = region.size();
  const std::int64_t length = box.shape.back();
  const std::int64_t rows = length == 0 ? 0 : element_count(box.shape) / length;
  const Dims strides = c_strides(region, 1);
  Dims at(dims);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < dims; ++d) offset += (box.target[d] + at[d]) * strides[d];
    run(offset, row * length, at);
    for (std::size_t d = dims; d-- > 1;) {
      if (++at[d - 1] < box.shape[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

/// For a grid that is not whole: each element comes from the sample whose middle is nearest, of
/// several the first.
void take_nearest(const std::vector<PlacedBox>& boxes, const Dims& region, std::size_t itemsize,
                  std::byte* out) {
  std::vector<double> best(static_cast<std::size_t>(element_count(region)),
                           std::numeric_limits<double>::infinity());
  for (const PlacedBox& placed : boxes) {
    const SampleBox& box = placed.box;
    const std::size_t last = region.size() - 1;
    const double* const along = box.weights[last];
    for_each_row(box, region,
                 [&, from = placed.values](std::int64_t to, std::int64_t row, const Dims& at) {
                   double outer = 0;
                   for (std::size_t d = 0; d < last; ++d)
                     if (box.weights[d] != nullptr) outer += box.weights[d][at[d]];
                   for (std::int64_t x = 0; x < box.shape.back(); ++x) {
                     const double distance = along == nullptr ? outer : outer + along[x];
                     double& smallest = best[static_cast<std::size_t>(to + x)];
                     if (distance >= smallest) continue;
                     smallest = distance;
                     std::memcpy(out + static_cast<std::size_t>(to + x) * itemsize,
                                 from + static_cast<std::size_t>(row + x) * itemsize, itemsize);
                   }
                 });
  }
}

template <class T>
void blend_boxes(const std::vector<PlacedBox>& boxes, const Dims& region, std::byte* out) {
  std::vector<WeightedBox<T>> weighted;
  for (const auto& [box, values] : boxes)
    weighted.push_back({{box.target, box.shape}, reinterpret_cast<const T*>(values), box.weights});
  blend<T>(weighted, region, std::numeric_limits<T>::quiet_NaN(), reinterpret_cast<T*>(out));
}

void cast_all(const DataType& from, const DataType& to, const std::byte* source, std::int64_t count,
              std::byte* result) {
  cast_row(from, to, false)(count, source, from.itemsize, {}, result);
}

/// Means of half precision are of sums of single precision.
void blend_halves(std::vector<PlacedBox> boxes, const Dims& region, const DataType& half,
                  std::byte* out) {
  std::vector<Buffer> wide;
  for (PlacedBox& one : boxes) {
    const std::int64_t count = element_count(one.box.shape);
    Buffer& values = wide.emplace_back(static_cast<std::size_t>(count) * sizeof(float));
    cast_all(half, float32(), one.values, count, values.data());
    one.values = values.data();
  }
  const std::int64_t count = element_count(region);
  Buffer result(static_cast<std::size_t>(count) * sizeof(float));
  blend_boxes<float>(boxes, region, result.data());
  cast_all(float32(), half, result.data(), count, out);
}

}  // namespace

Buffer fold_samples(const Placement& placement, std::int64_t number, const ObjectSamples& samples,
                    const std::function<const std::int64_t*(std::int64_t sample)>& starts_of,
                    Overlap overlap) {
  const Dims region = placement.region(number).shape;
  const std::size_t itemsize = placement.itemsize();
  std::vector<PlacedBox> boxes;
  for (const auto& [sample, values] : samples) {
    std::size_t offset = 0;
    for (SampleBox& box : placement.boxes(number, starts_of(sample))) {
      const std::size_t bytes = static_cast<std::size_t>(element_count(box.shape)) * itemsize;
      if (bytes > values.size() - offset)
        throw Error(ErrorCode::internal, "a sample has other boxes than its values");
      boxes.push_back({std::move(box), values.data() + offset});
      offset += bytes;
    }
  }
  Buffer result(static_cast<std::size_t>(element_count(region)) * itemsize);
  const bool makes_means = overlap == Overlap::mean || overlap == Overlap::cosine;
  if (placement.blends() && makes_means) {
    if (itemsize == 2)
      blend_halves(std::move(boxes), region, placement.type(), result.data());
    else if (itemsize == 4)
      blend_boxes<float>(boxes, region, result.data());
    else
      blend_boxes<double>(boxes, region, result.data());
    return result;
  }
  const Dims strides = c_strides(region, static_cast<std::int64_t>(itemsize));
  fill_strided(region, itemsize, placement.fill().data(), result.data(), strides);
  if (placement.blends()) {
    take_nearest(boxes, region, itemsize, result.data());
    return result;
  }
  for (const auto& [box, values] : boxes) {
    std::byte* to = result.data();
    for (std::size_t d = 0; d < region.size(); ++d) to += box.target[d] * strides[d];
    copy_strided(box.shape, itemsize, values,
                 c_strides(box.shape, static_cast<std::int64_t>(itemsize)), to, strides);
  }
  return result;
}

}  // namespace batchfs

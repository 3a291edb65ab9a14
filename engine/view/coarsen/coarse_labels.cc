#include "engine/view/coarsen/coarse_labels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/dataset/labels.h"

namespace batchfs {

namespace {

template <class Number>
NdArray array_of(const DataType& type, const std::vector<Number>& values) {
  NdArray result{
      type, {static_cast<std::int64_t>(values.size())}, Buffer(values.size() * sizeof(Number))};
  if (!values.empty()) std::memcpy(result.data.data(), values.data(), result.data.size());
  return result;
}

/// Counted from the earliest label, as in xarray: a mean of negative counts would round to 0.
std::optional<NdArray> means_of_times(const NdArray& labels, std::int64_t size) {
  const std::int64_t count = labels.shape[0];
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < count; ++i) times.push_back(label_count(labels, i));
  if (std::find(times.begin(), times.end(), INT64_MIN) != times.end()) return std::nullopt;
  const std::int64_t first = times.empty() ? 0 : *std::min_element(times.begin(), times.end());
  std::vector<std::int64_t> means;
  for (std::int64_t i = 0; i < count; i += size) {
    __int128 sum = 0;
    for (std::int64_t k = 0; k < size; ++k)
      sum += static_cast<__int128>(times[static_cast<std::size_t>(i + k)]) - first;
    means.push_back(static_cast<std::int64_t>(first + sum / size));
  }
  return array_of(labels.type, means);
}

}  // namespace

std::optional<NdArray> coarse_labels(const NdArray& labels, std::int64_t size) {
  if (labels.type.kind == Kind::datetime) return means_of_times(labels, size);
  const bool is_float = labels.type == float32() || labels.type == float64();
  if (!is_float && !labels.type.is_integer()) return std::nullopt;
  std::vector<double> means;
  for (std::int64_t i = 0; i < labels.shape[0]; i += size) {
    double sum = 0;
    for (std::int64_t k = 0; k < size; ++k) sum += static_cast<double>(label_number(labels, i + k));
    means.push_back(sum / static_cast<double>(size));
  }
  if (labels.type == float32())
    return array_of(float32(), std::vector<float>(means.begin(), means.end()));
  return array_of(float64(), means);
}

}  // namespace batchfs

#include "engine/write/blend.h"

#include <type_traits>

namespace batchfs {

namespace {

template <class T>
using Sum = std::conditional_t<sizeof(T) == 4, double, long double>;

/// Adds a row of a box. Without weights along the row the weight is a constant to the compiler.
template <class T>
void add_row(const T* values, const double* weights, double outer, std::int64_t count, Sum<T>* sums,
             Sum<T>* total) {
  if (weights == nullptr) {
    for (std::int64_t x = 0; x < count; ++x) {
      sums[x] += static_cast<Sum<T>>(outer) * static_cast<Sum<T>>(values[x]);
      total[x] += static_cast<Sum<T>>(outer);
    }
    return;
  }
  for (std::int64_t x = 0; x < count; ++x) {
    const Sum<T> weight = static_cast<Sum<T>>(outer) * static_cast<Sum<T>>(weights[x]);
    sums[x] += weight * static_cast<Sum<T>>(values[x]);
    total[x] += weight;
  }
}

/// Adds the row `at` (the last dimension's index is not used) of a box, if it has that row.
template <class T>
void add_box(const WeightedBox<T>& one, const Dims& at, Sum<T>* sums, Sum<T>* total) {
  const std::size_t last = at.size() - 1;
  double outer = 1;
  std::int64_t row = 0;
  for (std::size_t d = 0; d < last; ++d) {
    const std::int64_t inside = at[d] - one.box.start[d];
    if (inside < 0 || inside >= one.box.shape[d]) return;
    if (one.weights[d] != nullptr) outer *= one.weights[d][inside];
    row = row * one.box.shape[d] + inside;
  }
  const std::int64_t start = one.box.start[last], count = one.box.shape[last];
  add_row(one.values + row * count, one.weights[last], outer, count, sums + start, total + start);
}

}  // namespace

template <class T>
void blend(std::span<const WeightedBox<T>> boxes, const Dims& shape, T fill, T* out) {
  // A row at a time: the sums stay in the first cache.
  const std::int64_t length = shape.back();
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  std::vector<Sum<T>> sums(static_cast<std::size_t>(length)), total(sums.size());
  Dims at(shape.size());
  for (std::int64_t row = 0; row < rows; ++row, out += length) {
    std::fill(sums.begin(), sums.end(), 0);
    std::fill(total.begin(), total.end(), 0);
    for (const WeightedBox<T>& box : boxes) add_box(box, at, sums.data(), total.data());
    for (std::int64_t x = 0; x < length; ++x) {
      const auto i = static_cast<std::size_t>(x);
      out[x] = total[i] > 0 ? static_cast<T>(sums[i] / total[i]) : fill;
    }
    for (std::size_t d = shape.size() - 1; d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

template void blend(std::span<const WeightedBox<float>>, const Dims&, float, float*);
template void blend(std::span<const WeightedBox<double>>, const Dims&, double, double*);

}  // namespace batchfs

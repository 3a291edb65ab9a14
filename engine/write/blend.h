#pragma once
// Weighted means of values that overlap: predictions of windows that share elements.

#include <span>
#include <vector>

#include "engine/base/dims.h"

namespace batchfs {

/// The values of one sample in a region, in C order.
template <class T>
struct WeightedBox {
  Box box;  // in the region
  const T* values;
  /// Along each dimension a weight for each position of the box, greater than 0; null: 1. An
  /// element's weight is their product.
  std::vector<const double*> weights;
};

/// Sets every element of a region, in C order, to the mean of the boxes that hold it, rounded once;
/// to `fill` where none does, and to the value itself where one does. Sums are of double for float,
/// of long double for double: means of equal values are these values. The order of the boxes
/// decides the last bits of other sums.
///
/// Preconditions: the boxes lie in the region; `out` has its elements. T is float or double.
template <class T>
void blend(std::span<const WeightedBox<T>> boxes, const Dims& shape, T fill, T* out);

}  // namespace batchfs

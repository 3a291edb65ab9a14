#pragma once
// A sample's values in an object, cut from a caller's array.

#include <cstdint>

#include "engine/base/buffer.h"
#include "engine/write/prediction/placement.h"
#include "engine/write/prediction/value_cast.h"

namespace batchfs {

/// The values of an array in a tensor that a caller passed. Refers to both.
class SampleValues {
 public:
  /// Throws invalid_argument for values that are not (samples, tensor_shape), or of a type that
  /// does not become the array's.
  SampleValues(const Placement& placement, const PredictedValues& values, std::size_t samples);

  /// Numbers that undo the normalization of one sample; empty where it is not undone.
  struct Numbers {
    std::vector<double> multiply, add;
  };
  /// `row`: of the epoch.
  Numbers numbers(std::size_t row) const;

  /// The values in the sample's boxes, one box after the other, each in C order, as elements of the
  /// array. `sample`: its number in the values. Throws invalid_argument for a sample that has fewer
  /// positions than its boxes.
  Buffer cut(const std::vector<SampleBox>& boxes, std::size_t sample, const Numbers& numbers) const;

 private:
  void check_type() const;
  void check_shape(std::size_t samples) const;
  void cut_box(const SampleBox& box, const std::byte* sample, const Numbers& numbers,
               std::byte* result) const;

  const Placement& placement_;
  const PredictedValues& values_;
  const std::byte* first_ = nullptr;
  Dims shape_, strides_;  // of a sample's values along the axes; strides in bytes
  Dims scale_strides_;    // in entries
  CastRow cast_ = nullptr;
};

}  // namespace batchfs

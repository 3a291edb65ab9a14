#pragma once
// An output array: its objects, the samples that each needs, and the boxes of a sample in them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/dims.h"
#include "engine/write/output_array.h"
#include "engine/write/prediction/axis_windows.h"

namespace batchfs {

/// The product of the pieces along all axes: values of a sample in an object.
struct SampleBox {
  Dims source;  // the first of the sample's values
  Dims target;  // the first element in the object
  Dims shape;
  /// Along each axis one for each position of the box; null: 1.
  std::vector<const double*> weights;
};

/// Immutable, thread-safe.
class Placement {
 public:
  /// Settles overlap, chunks and objects. Throws invalid_argument naming the option that must
  /// change, and for arrays whose members contradict each other; not_supported.
  Placement(PredictedArray array, const PredictionSamples& samples,
            const PredictionOptions& options);

  const PredictedArray& array() const { return array_; }
  const std::string& name() const { return array_.name; }
  const DataType& type() const { return array_.type; }
  std::size_t itemsize() const { return array_.type.itemsize; }
  Dims shape() const;
  const OutputChunks& chunks() const { return chunks_; }
  /// The value of the elements that no sample has: NaN, or 0.
  const std::vector<std::byte>& fill() const { return fill_; }
  /// Does an element get values of several samples, by weights or by distance?
  bool blends() const;

  /// Numbers of objects count through the grid of objects in C order.
  std::int64_t objects() const { return static_cast<std::int64_t>(expected_.size()); }
  const Dims& grid() const { return grid_; }
  Dims object_index(std::int64_t number) const;
  std::int64_t object_number(const Dims& index) const;
  /// Its elements in the array, clipped at the array's end.
  Box region(std::int64_t number) const;
  /// Samples that have values in it.
  std::uint32_t expected(std::int64_t number) const {
    return expected_[static_cast<std::size_t>(number)];
  }

  /// `starts`: of a sample, one for each dimension of the view.
  std::vector<std::int64_t> objects_of(const std::int64_t* starts) const;
  void each_object(const std::int64_t* starts,
                   const std::function<void(std::int64_t number)>& call) const;
  /// The sample's boxes in an object, always in the same order.
  std::vector<SampleBox> boxes(std::int64_t number, const std::int64_t* starts) const;
  /// Elements of these boxes.
  static std::int64_t elements(const std::vector<SampleBox>& boxes);

 private:
  std::int64_t start_along(std::size_t axis, const std::int64_t* starts) const;
  void check_sharing(const PredictionSamples& samples, Overlap overlap) const;

  const PredictedArray array_;
  std::vector<AxisWindows> axes_;
  OutputChunks chunks_;
  Dims grid_;
  std::vector<std::byte> fill_;
  std::vector<std::uint32_t> expected_;
};

}  // namespace batchfs

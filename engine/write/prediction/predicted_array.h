#pragma once
// The arrays of an output for predictions, as a view describes them.
//
// A sample of the view has a tensor; the values of a variable in it are the sample's part of an
// output array. Each axis of the array determines which of its positions a sample has: all of them,
// or those of its window, which begins where the sample starts along a dimension of the view.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/dims.h"
#include "engine/base/json.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

/// The labels of an axis as an array of one dimension stores them: encoded by CF conventions.
struct CoordinateLabels {
  DataType type;                     // of a fixed size, or Kind::variable_string
  std::vector<std::byte> values;     // of a fixed size: native order
  std::vector<std::string> strings;  // of Kind::variable_string: UTF-8
  Json attributes = Json::object();  // as stored

  std::size_t size() const {
    return type.is_variable() ? strings.size() : values.size() / type.itemsize;
  }
};

struct PredictedAxis {
  std::string name;
  std::int64_t length = 0;
  /// The number of the view's dimension along which windows move; -1: every sample has the whole
  /// axis.
  int window = -1;
  /// For axes with a window: (offset from the window's start, positions), in the order of the
  /// sample's values.
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;
  bool wraps = false;
  /// The axis has one position for each distinct start of the window, ascending: `length` is their
  /// number, and `blocks` is not used.
  bool by_start = false;
  /// A sample at the edge may have fewer positions than in `blocks`: those beyond the axis are left
  /// out.
  bool partial = false;
  /// One for each position of the axis, also with by_start; null: the output has no coordinate.
  std::shared_ptr<const CoordinateLabels> labels;

  /// Positions that a sample has along it.
  std::int64_t extent() const {
    if (window < 0) return length;
    if (by_start) return 1;
    std::int64_t sum = 0;
    for (const auto& [offset, size] : blocks) sum += size;
    return sum;
  }
};

/// A variable's channels in a stacked tensor.
struct StackSlice {
  int dimension = 1;                 // of the tensor, samples being 0
  std::int64_t first = 0, last = 0;  // channels, the last one excluded
  Dims lengths;                      // of the joined dimensions that they are made of; {}: one
};

/// Undoes a normalization: value * multiply + add, in double for double and whole numbers, in float
/// for other types, with a rounding each. Immutable, thread-safe. Numbers are made for one sample
/// at a time: with windows in space, those of all samples would be larger than the output.
class PredictedScale {
 public:
  virtual ~PredictedScale() = default;
  /// Positions that a sample has along each axis of the array: 1 where the numbers do not depend on
  /// it.
  const Dims& shape() const { return shape_; }
  /// Sets the numbers of the sample in this row of PredictionSamples: both have the elements of
  /// shape(), in C order.
  virtual void numbers(std::size_t row, double* multiply, double* add) const = 0;

 protected:
  explicit PredictedScale(Dims shape) : shape_(shape) {}

 private:
  const Dims shape_;
};

struct PredictedArray {
  std::string name;                 // of the array: a name without "/"
  std::string tensor;               // whose values it gets
  std::vector<PredictedAxis> axes;  // as stored
  /// For each axis the dimension of a sample's values that moves along it: those of `stack.lengths`
  /// come first, then the tensor's own without samples and the stacked one. -1: none; the sample
  /// has one position, that of its window's start.
  std::vector<int> order;
  std::optional<StackSlice> stack;
  Dims tensor_shape;                     // of one sample; {} for one number
  std::vector<std::string> tensor_dims;  // for messages; the first is that of samples
  DataType type;                         // of the output: numbers or bool
  Json attributes = Json::object();      // without _FillValue, which the writer adds for floats
  std::shared_ptr<const PredictedScale> scale;  // null: values are written unchanged
};

/// The samples of an epoch, ascending.
struct PredictionSamples {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> starts;  // (samples, dims), C order
  std::vector<std::string> dims;     // of the view along which windows move
  /// Is every combination of starts along the dimensions a sample?
  bool is_grid = false;
  /// Digest of numbers and starts: outputs of different samples differ in it.
  std::string digest;

  std::size_t size() const { return numbers.size(); }
  std::int64_t start(std::size_t row, int dim) const {
    return starts[row * dims.size() + static_cast<std::size_t>(dim)];
  }
};

}  // namespace batchfs

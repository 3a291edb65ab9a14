#pragma once
// The kernel that converts stored elements to a tensor's elements: CF decoding, normalisation,
// replacement of missing values, and a final cast in one pass, for strided boxes. One indirect call
// per innermost run, none per element.

#include <memory>
#include <optional>
#include <vector>

#include "engine/base/dims.h"
#include "engine/dataset/cf.h"

namespace batchfs {

/// (x - subtract) / divide in float64, a rounding each: with one pair of numbers for every element,
/// or with one for each position along some dimensions.
struct Normalization {
  /// Before that, x becomes log(1 + max(x, 0) / log_scale).
  std::optional<double> log_scale = {};
  std::vector<double> subtract, divide;  // of the same length
  /// Entries from one array index to the next, per array dimension; 0 where the numbers are the
  /// same.
  Dims strides;

  bool by_position() const {
    return std::any_of(strides.begin(), strides.end(), [](std::int64_t n) { return n != 0; });
  }
};

/// The operations on a decoded number before its cast to the result, in this order.
struct Finish {
  std::shared_ptr<const Normalization> normalization;  // null: none
  std::optional<double> nan_value;                     // replaces NaN

  bool nothing() const { return normalization == nullptr && !nan_value; }
};

/// Immutable, thread-safe, cheap to copy.
class Converter {
 public:
  /// `result` is decoding.decoded, or another float type when that is a float (the view's `dtype`).
  /// With `finish`, and for float64, integers become floats too. Throws not_supported for pairs
  /// that make no sense.
  Converter(const CfDecoding& decoding, const DataType& result, Finish finish = {});

  const CfDecoding& decoding() const { return decoding_; }
  const Finish& finish() const { return finish_; }
  const DataType& result() const { return result_; }

  std::size_t source_itemsize() const { return source_itemsize_; }
  std::size_t result_itemsize() const { return result_itemsize_; }

  /// Result bytes equal source bytes: a plain copy does.
  bool is_copy() const { return is_copy_; }
  /// May source and result be the same memory (same item size, same strides)?
  bool in_place() const { return source_itemsize_ == result_itemsize_; }

  /// Does the result depend on where in the array an element is?
  bool by_position() const {
    return finish_.normalization != nullptr && finish_.normalization->by_position();
  }

  /// Converts a box. Strides in bytes; `origin` is the array index of its first element, and only
  /// needed when by_position().
  void convert(const Dims& shape, const std::byte* source, const Dims& source_strides,
               std::byte* result, const Dims& result_strides, const Dims& origin = {}) const;

 private:
  using Run = void (*)(const CfDecoding&, std::int64_t count, const std::byte* source,
                       std::int64_t source_stride, std::byte* result, std::int64_t result_stride);
  using Cast = void (*)(std::int64_t count, const double* values, const double* subtract,
                        const double* divide, const double* nan_value, std::byte* result,
                        std::int64_t result_stride);
  void convert_in_blocks(const Dims& shape, const std::byte* source, const Dims& source_strides,
                         std::byte* result, const Dims& result_strides, std::int64_t entry) const;

  CfDecoding decoding_;
  DataType result_;
  Finish finish_;
  Run run_ = nullptr;    // to the result, or to float64 when there is a `cast_`
  Cast cast_ = nullptr;  // from blocks of float64 to the result
  std::size_t source_itemsize_ = 0, result_itemsize_ = 0;
  bool is_copy_ = false;
};

}  // namespace batchfs

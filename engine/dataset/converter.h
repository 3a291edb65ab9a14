#pragma once
// The kernel that turns stored elements into a tensor's elements: CF decoding and a final cast in one
// pass, for strided boxes. One indirect call per innermost run, none per element.

#include "engine/base/dims.h"
#include "engine/dataset/cf.h"

namespace batchfs {

/// Immutable, thread-safe, cheap to copy.
class Converter {
 public:
  /// `result` is decoding.decoded, or another float type when that is a float (the view's `dtype`).
  /// Throws not_supported for pairs that make no sense.
  Converter(const CfDecoding& decoding, const DataType& result);

  std::size_t source_itemsize() const { return source_itemsize_; }
  std::size_t result_itemsize() const { return result_itemsize_; }

  /// Result bytes equal source bytes: a plain copy does.
  bool is_copy() const { return is_copy_; }
  /// May source and result be the same memory (same item size, same strides)?
  bool in_place() const { return source_itemsize_ == result_itemsize_; }

  /// Converts a box. Strides in bytes.
  void convert(const Dims& shape, const std::byte* source, const Dims& source_strides,
               std::byte* result, const Dims& result_strides) const;

 private:
  using Run = void (*)(const CfDecoding&, std::int64_t count, const std::byte* source,
                       std::int64_t source_stride, std::byte* result, std::int64_t result_stride);
  CfDecoding decoding_;
  Run run_ = nullptr;
  std::size_t source_itemsize_ = 0, result_itemsize_ = 0;
  bool is_copy_ = false;
};

}  // namespace batchfs

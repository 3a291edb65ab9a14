#pragma once
// Arrays as npy, JSON or text for people, written as their elements come.

#include <memory>
#include <span>

#include "engine/base/dims.h"
#include "engine/zarr/data_type.h"
#include "tools/cli/output.h"

namespace batchfs {

/// Takes the elements of one array in C order, in pieces; the first call writes the head.
class ValueWriter {
 public:
  virtual ~ValueWriter() = default;
  virtual void write(std::span<const std::byte> elements) = 0;
  /// After the last element.
  virtual void finish() = 0;
};

std::unique_ptr<ValueWriter> npy_writer(Output& output, const DataType& type, const Dims& shape);

/// A nested list with elements in the form of value_text.h; a lone value for a scalar.
std::unique_ptr<ValueWriter> json_writer(Output& output, const DataType& type, const Dims& shape);

/// Nested brackets with aligned columns, as numpy prints. `shape` is the shape written; in
/// dimensions where `elided[d]` is true, "..." stands after the first half. Keeps everything until
/// finish().
std::unique_ptr<ValueWriter> text_writer(Output& output, const DataType& type, const Dims& shape,
                                         const Dims& elided);

}  // namespace batchfs

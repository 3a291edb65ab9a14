#pragma once
// The keys "shape", "axis" and "dist" of imagecodecs' predictors.

#include "engine/codec/codec.h"

namespace batchfs {

struct ConfiguredShape {
  /// Throws invalid_argument unless elements of `itemsize` bytes in this shape fill the chunk.
  /// Without a shape it is that of the chunk, or one dimension if not `is_array`.
  ConfiguredShape(const JsonRef& configuration, const ChunkLayout& layout, std::size_t itemsize,
                  bool is_array);

  Dims shape;
  std::size_t axis = 0;
  std::int64_t distance = 1;  // elements of the axis
};

}  // namespace batchfs

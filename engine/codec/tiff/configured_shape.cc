#include "engine/codec/tiff/configured_shape.h"

#include <algorithm>

namespace batchfs {

ConfiguredShape::ConfiguredShape(const JsonRef& configuration, const ChunkLayout& layout,
                                 std::size_t itemsize, bool is_array) {
  const std::int64_t bytes = element_count(layout.shape) * layout.type.itemsize;
  const auto size = static_cast<std::int64_t>(itemsize);
  const auto given = configuration.find("shape");
  if (given && !given->is_null()) {
    for (const JsonRef& length : given->elements()) shape.push_back(length.integer(1));
    // Divided, not multiplied: the product of a hostile shape is too large.
    std::int64_t rest = bytes / size;
    for (const std::int64_t length : shape) rest = rest % length == 0 ? rest / length : 0;
    if (bytes % size != 0 || rest != 1)
      throw given->error("the shape does not have as many elements as a chunk");
  } else if (is_array) {
    shape = layout.shape;
  } else {
    shape = {bytes / size};
  }
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto at = configuration.find("axis");
  const std::int64_t number = at ? at->integer(-rank, std::max<std::int64_t>(rank - 1, 0)) : -1;
  axis = static_cast<std::size_t>(number >= 0 || rank == 0 ? std::max<std::int64_t>(number, 0)
                                                           : number + rank);
  if (const auto steps = configuration.find("dist")) distance = steps->integer(1);
}

}  // namespace batchfs

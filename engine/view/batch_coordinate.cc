#include "engine/view/batch_coordinate.h"

#include <cstring>
#include <memory>
#include <utility>

namespace batchfs {

NdArray BatchCoordinate::values() const {
  NdArray all{type, {count}, Buffer(static_cast<std::size_t>(bytes()))};
  for_each_range(count, [&](RowRange range) {
    read(range, all.data.data() + static_cast<std::size_t>(range.first) * type.itemsize);
  });
  return all;
}

BatchCoordinate coordinate_part(const NdArray& values, std::int64_t first, std::int64_t count) {
  BatchCoordinate result;
  result.type = values.type;
  result.count = count;
  result.read = [&values, first](RowRange range, std::byte* out) {
    const std::size_t itemsize = values.type.itemsize;
    if (range.count > 0)
      std::memcpy(out,
                  values.data.data() + static_cast<std::size_t>(first + range.first) * itemsize,
                  static_cast<std::size_t>(range.count) * itemsize);
  };
  return result;
}

BatchCoordinate whole_coordinate(NdArray values) {
  const auto held = std::make_shared<const NdArray>(std::move(values));
  BatchCoordinate result = coordinate_part(*held, 0, held->shape[0]);
  result.read = [held, read = std::move(result.read)](RowRange range, std::byte* out) {
    read(range, out);
  };
  return result;
}

}  // namespace batchfs

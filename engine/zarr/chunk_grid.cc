#include "engine/zarr/chunk_grid.h"

namespace batchfs {

ChunkGrid::ChunkGrid(Dims array_shape, Dims chunk_shape)
    : array_shape_(array_shape), chunk_shape_(chunk_shape) {
  if (array_shape.size() != chunk_shape.size())
    throw Error(ErrorCode::invalid_argument,
                "shape and chunks have different numbers of dimensions");
  for (std::size_t d = 0; d < array_shape.size(); ++d) {
    if (array_shape[d] < 0)
      throw Error(ErrorCode::invalid_argument, "a dimension has a negative length");
    if (chunk_shape[d] < 1) throw Error(ErrorCode::invalid_argument, "a chunk length is below 1");
    counts_.push_back(array_shape[d] == 0 ? 0 : (array_shape[d] - 1) / chunk_shape[d] + 1);
  }
  chunk_count_ = element_count(counts_);
  if (chunk_count_ > INT64_C(1) << 62)
    throw Error(ErrorCode::not_supported, "arrays of more than 2^62 chunks are not supported");
}

std::int64_t ChunkGrid::linear(const Dims& chunk) const {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < counts_.size(); ++d) number = number * counts_[d] + chunk[d];
  return number;
}

Dims ChunkGrid::chunk(std::int64_t linear) const {
  Dims index(counts_.size());
  for (std::size_t d = counts_.size(); d-- > 0;) {
    index[d] = linear % counts_[d];
    linear /= counts_[d];
  }
  return index;
}

Box ChunkGrid::box(const Dims& chunk) const {
  Box box;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    const std::int64_t start = chunk[d] * chunk_shape_[d];
    box.start.push_back(start);
    box.shape.push_back(std::min(chunk_shape_[d], array_shape_[d] - start));
  }
  return box;
}

}  // namespace batchfs

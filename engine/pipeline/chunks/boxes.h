#pragma once
// Cutting boxes of an array along its chunk grid, and runs of elements into boxes.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/pipeline/chunks/assembly.h"
#include "engine/zarr/chunk_grid.h"

namespace batchfs {

/// Calls `visit(chunk, source, offset)` for every chunk that `box` (array coordinates) touches: its
/// linear number, the touched elements in chunk coordinates, and where they begin in the box.
template <class Visit>
void for_each_chunk(const ChunkGrid& grid, const Box& box, Visit&& visit) {
  if (box.empty()) return;
  const std::size_t rank = box.shape.size();
  Dims first(rank), last(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    first[d] = box.start[d] / grid.chunk_shape()[d];
    last[d] = (box.start[d] + box.shape[d] - 1) / grid.chunk_shape()[d];
  }
  Dims chunk = first;
  for (;;) {
    Box source{Dims(rank), Dims(rank)};
    Dims offset(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t origin = chunk[d] * grid.chunk_shape()[d];
      const std::int64_t begin = std::max(box.start[d], origin);
      const std::int64_t end =
          std::min(box.start[d] + box.shape[d], origin + grid.chunk_shape()[d]);
      source.start[d] = begin - origin;
      source.shape[d] = end - begin;
      offset[d] = begin - box.start[d];
    }
    visit(grid.linear(chunk), source, offset);
    std::size_t d = rank;
    while (d > 0 && chunk[d - 1] == last[d - 1]) {
      chunk[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) return;
    ++chunk[d - 1];
  }
}

/// The elements that lie in both; empty where none does.
Box intersection(const Box& a, const Box& b);

/// Returns the rest of `box` without `cut`. nullopt where that is not a box, or nothing is cut off;
/// empty where nothing is left.
std::optional<Box> without(const Box& box, const Box& cut);

/// The C-order elements [first, first + count) of an array as boxes, in order: at most two per
/// dimension.
std::vector<Box> boxes_of_run(const Dims& shape, std::int64_t first, std::int64_t count);

/// Adds one use per chunk that `box` touches: its elements go to `out` at `strides` (bytes),
/// converted when `converter` is given.
void add_box(Assembly& assembly, const std::shared_ptr<const Array>& array, const Box& box,
             const Converter* converter, std::byte* out, const Dims& strides);

/// Joins the uses of the same chunk of an assembly into one.
void merge_uses(Assembly& assembly);

}  // namespace batchfs

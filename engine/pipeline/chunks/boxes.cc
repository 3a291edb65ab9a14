#include "engine/pipeline/chunks/boxes.h"

#include <algorithm>
#include <numeric>

namespace batchfs {

Box intersection(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t d = 0; d < both.start.size(); ++d) {
    both.start[d] = std::max(a.start[d], b.start[d]);
    both.shape[d] = std::min(a.start[d] + a.shape[d], b.start[d] + b.shape[d]) - both.start[d];
  }
  return both;
}

std::optional<Box> without(const Box& box, const Box& cut) {
  const Box both = intersection(box, cut);
  if (both.empty()) return std::nullopt;
  Box rest = box;
  std::size_t cut_dims = 0;
  for (std::size_t d = 0; d < box.start.size(); ++d) {
    if (both.shape[d] == box.shape[d]) continue;
    const bool at_begin = both.start[d] == box.start[d];
    const bool at_end = both.start[d] + both.shape[d] == box.start[d] + box.shape[d];
    if (++cut_dims > 1 || !(at_begin || at_end)) return std::nullopt;
    rest.shape[d] -= both.shape[d];
    if (at_begin) rest.start[d] += both.shape[d];
  }
  if (cut_dims == 0) rest.shape = Dims(box.shape.size());
  return rest;
}

std::vector<Box> boxes_of_run(const Dims& shape, std::int64_t first, std::int64_t count) {
  std::vector<Box> boxes;
  const std::size_t rank = shape.size();
  if (rank == 0) {
    if (count > 0) boxes.push_back({});
    return boxes;
  }
  // size[d]: elements of one step of dimension d - 1 (size[0] is the whole).
  Dims size(rank + 1, 1);
  for (std::size_t d = rank; d-- > 0;) size[d] = size[d + 1] * shape[d];
  while (count > 0) {
    // The largest block that begins here and is a whole number of steps of some dimension.
    std::size_t d = rank - 1;
    while (d > 0 && first % size[d] == 0 && count >= size[d]) --d;
    const std::int64_t at = (first / size[d + 1]) % shape[d];
    const std::int64_t steps = std::min(shape[d] - at, count / size[d + 1]);
    Box box{Dims(rank), Dims(rank, 1)};
    std::int64_t rest = first;
    for (std::size_t k = 0; k < rank; ++k) {
      box.start[k] = rest / size[k + 1];
      rest %= size[k + 1];
      if (k > d) box.shape[k] = shape[k];
    }
    box.shape[d] = steps;
    boxes.push_back(box);
    first += steps * size[d + 1];
    count -= steps * size[d + 1];
  }
  return boxes;
}

void add_box(Assembly& assembly, const std::shared_ptr<const Array>& array, const Box& box,
             const Converter* converter, std::byte* out, const Dims& strides) {
  for_each_chunk(array->grid(), box,
                 [&](std::int64_t chunk, const Box& source, const Dims& offset) {
                   std::byte* to = out;
                   for (std::size_t d = 0; d < offset.size(); ++d) to += offset[d] * strides[d];
                   assembly.uses.push_back(
                       {array, chunk, static_cast<std::uint32_t>(assembly.parts.size()), 1});
                   assembly.parts.push_back({source, to, strides, converter});
                 });
}

void merge_uses(Assembly& assembly) {
  std::vector<std::size_t> order(assembly.uses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return assembly.uses[a].chunk < assembly.uses[b].chunk;
  });
  std::vector<Assembly::Use> uses;
  std::vector<Assembly::Part> parts;
  for (std::size_t i : order) {
    const Assembly::Use& use = assembly.uses[i];
    if (uses.empty() || uses.back().chunk != use.chunk)
      uses.push_back({use.array, use.chunk, static_cast<std::uint32_t>(parts.size()), 0});
    for (const Assembly::Part& part : assembly.parts_of(use)) parts.push_back(part);
    uses.back().part_count += use.part_count;
  }
  assembly.uses = std::move(uses);
  assembly.parts = std::move(parts);
}

}  // namespace batchfs

#include "engine/scan/operand_reads.h"

#include <algorithm>
#include <map>

#include "engine/dataset/joined/axis_join.h"

namespace batchfs {

namespace {

/// Indices of one chunk along a dimension, and the places in the result that they go to.
struct ChunkIndices {
  std::int64_t first = INT64_MAX, last = -1;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
};

std::vector<ChunkIndices> groups_along(const Positions& positions, std::int64_t start,
                                       std::int64_t count, std::int64_t chunk_length) {
  std::map<std::int64_t, ChunkIndices> by_chunk;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = positions[start + i];
    if (index == Positions::kNone) continue;
    ChunkIndices& group = by_chunk[index / chunk_length];
    group.first = std::min(group.first, index);
    group.last = std::max(group.last, index);
    group.places.emplace_back(index, i);
  }
  std::vector<ChunkIndices> groups;
  for (auto& [chunk, group] : by_chunk) {
    for (auto& [index, place] : group.places) index -= group.first;
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

OperandReads::OperandReads(const Variable& variable) {
  std::vector<Positions> whole;
  bool is_joined = false;
  for (std::size_t d = 0; d < variable.dims.size(); ++d) {
    const AxisJoin* join = variable.join_along(d);
    is_joined = is_joined || join != nullptr;
    whole.push_back(join != nullptr ? join->positions() : Positions::range(0, variable.shape[d]));
  }
  if (!variable.is_concatenated()) {
    parts_.push_back({&variable, is_joined ? std::move(whole) : std::vector<Positions>{}});
    return;
  }
  for (std::size_t p = 0; p < variable.parts.size(); ++p) {
    Part part{variable.parts[p].get(), whole};
    Positions& along = part.positions[variable.concat_dim];
    along = composed(variable.concat->parts[p].positions, along);
    parts_.push_back(std::move(part));
  }
}

bool OperandReads::has(std::size_t d, std::int64_t position) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    return part.positions.empty() || part.positions[d][position] != Positions::kNone;
  });
}

std::vector<OperandReads::Read> OperandReads::of(const Box& box) const {
  std::vector<Read> reads;
  const std::size_t rank = box.shape.size();
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    std::vector<std::vector<ChunkIndices>> groups;
    for (std::size_t d = 0; d < rank; ++d) {
      const Positions all = parts_[p].positions.empty()
                                ? Positions::range(0, parts_[p].variable->shape[d])
                                : parts_[p].positions[d];
      groups.push_back(groups_along(all, box.start[d], box.shape[d],
                                    parts_[p].variable->array->grid().chunk_shape()[d]));
    }
    if (std::any_of(groups.begin(), groups.end(), [](const auto& each) { return each.empty(); }))
      continue;
    Dims at(rank);
    for (;;) {
      Read& read = reads.emplace_back();
      read.part = p;
      for (std::size_t d = 0; d < rank; ++d) {
        const ChunkIndices& group = groups[d][static_cast<std::size_t>(at[d])];
        read.box.start.push_back(group.first);
        read.box.shape.push_back(group.last - group.first + 1);
        read.places.push_back(group.places);
      }
      std::size_t d = rank;
      while (d > 0 && at[d - 1] + 1 == static_cast<std::int64_t>(groups[d - 1].size())) at[--d] = 0;
      if (d == 0) break;
      ++at[d - 1];
    }
  }
  return reads;
}

}  // namespace batchfs

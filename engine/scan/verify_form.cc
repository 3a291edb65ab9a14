#include "engine/scan/verify_form.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"

namespace batchfs {

VerifyForm::VerifyForm(const std::shared_ptr<Store>& store, const VerifyTarget& target,
                       std::uint64_t memory)
    : metadata(target.metadata), selects_all(!target.chunks) {
  const ArrayMetadata& array = *metadata;
  if (!array.unsupported.empty()) throw Error(ErrorCode::not_supported, array.unsupported);
  objects = grid = ChunkGrid(array.shape, array.chunk_shape);
  if (array.type.is_variable()) {
    strings = std::make_unique<const StringArray>(store, metadata);
  } else {
    ChunkLayout layout{array.chunk_shape, array.type, array.fill_value};
    layout.stored = array.stored;
    if (array.codecs.size() == 1 && array.codecs.front().name == "sharding_indexed") {
      const CodecSpec& spec = array.codecs.front();
      shards = std::make_unique<const ShardLayout>(JsonRef(spec.configuration, spec.name), layout);
      grid = ChunkGrid(array.shape, shards->inner_shape);
      chain = shards->inner.get();
    } else {
      own_chain_ = std::make_unique<const CodecChain>(array.codecs, layout);
      chain = own_chain_.get();
    }
    if (chain->decoded_size() > memory)
      throw Error(ErrorCode::not_supported,
                  fmt::format("a chunk decodes to {}, more than --memory, {}",
                              format_size(chain->decoded_size()), format_size(memory)));
    // Read, decoded, and sorted by offset.
    if (shards && shards->index_bytes > memory / 4)
      throw Error(ErrorCode::not_supported,
                  fmt::format("a shard index of {} needs more than --memory, {}",
                              format_size(shards->index_bytes), format_size(memory)));
  }
  selection = target.chunks.value_or(ChunkSelection(grid.counts().size()));
  object_selection = selection;
  if (!shards) return;
  const Dims per = per_object();
  for (std::size_t d = 0; d < object_selection.size(); ++d) {
    if (!object_selection[d]) continue;
    std::vector<std::int64_t>& indices = *object_selection[d];
    for (std::int64_t& index : indices) index /= per[d];
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  }
}

std::string VerifyForm::chunk_name(const Dims& chunk) const {
  std::string name;
  for (const std::int64_t index : chunk) name += (name.empty() ? "" : ".") + std::to_string(index);
  return name.empty() ? "0" : name;
}

std::uint64_t VerifyForm::memory_for(std::uint64_t stored) const {
  if (strings)
    return 4 * stored;  // strings compress well; a chunk that is larger alone is read alone
  if (chain->is_plain()) return stored;
  return stored + chain->decoded_size() + chain->scratch_bytes();
}

Dims VerifyForm::per_object() const {
  Dims per(grid.counts().size(), 1);
  if (shards)
    for (std::size_t d = 0; d < per.size(); ++d)
      per[d] = metadata->chunk_shape[d] / shards->inner_shape[d];
  return per;
}

std::uint64_t VerifyForm::chunks_in(const Dims& object) const {
  const Dims per = per_object();
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < per.size(); ++d) {
    const std::int64_t first = object[d] * per[d], end = std::min(first + per[d], grid.counts()[d]);
    if (selection[d]) {
      const auto from = std::lower_bound(selection[d]->begin(), selection[d]->end(), first);
      count *= static_cast<std::uint64_t>(std::lower_bound(from, selection[d]->end(), end) - from);
    } else {
      count *= static_cast<std::uint64_t>(end - first);
    }
  }
  return count;
}

}  // namespace batchfs

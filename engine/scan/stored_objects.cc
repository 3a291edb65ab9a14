#include "engine/scan/stored_objects.h"

#include <algorithm>

#include "engine/base/strings.h"

namespace batchfs {

namespace {

bool is_metadata(std::string_view name) {
  return name == "zarr.json" || name == ".zarray" || name == ".zattrs" || name == ".zgroup" ||
         name == ".zmetadata";
}

/// Components of the longest key of a chunk: folders below that hold no chunks.
std::size_t key_components(const ArrayMetadata& metadata) {
  const std::string key = metadata.key_encoding.key(Dims(metadata.shape.size()));
  return static_cast<std::size_t>(std::count(key.begin(), key.end(), '/')) + 1;
}

class Listing {
 public:
  Listing(Store& store, const ArrayMetadata& metadata, const ChunkGrid& grid,
          const TakeObject& take, const TakeNote& note)
      : store_(store),
        metadata_(metadata),
        grid_(grid),
        take_(take),
        note_(note),
        depth_(key_components(metadata)) {}

  /// False when the walk was ended.
  bool walk(const std::string& below, std::size_t level) const {
    const std::string& path = metadata_.path;
    const std::string at = path.empty() ? below : below.empty() ? path : path + "/" + below;
    for (const Store::Entry& entry : store_.list(at)) {
      const std::string name = below.empty() ? entry.name : below + "/" + entry.name;
      const std::string key = path.empty() ? name : path + "/" + name;
      if (entry.is_prefix && level + 1 < depth_) {
        if (!walk(name, level + 1)) return false;
        continue;
      }
      if (entry.is_prefix) {
        note_(key, "a folder where the array has no chunks");
        continue;
      }
      if (level == 0 && is_metadata(entry.name)) continue;
      const std::optional<Dims> chunk = chunk_of_key(metadata_, name);
      if (!chunk) {
        note_(key, "no chunk of the array has this name");
      } else if (!is_inside(grid_, *chunk)) {
        note_(key, "the chunk lies outside the array's shape");
      } else if (!take_(*chunk, key)) {
        return false;
      }
    }
    return true;
  }

 private:
  Store& store_;
  const ArrayMetadata& metadata_;
  const ChunkGrid& grid_;
  const TakeObject& take_;
  const TakeNote& note_;
  const std::size_t depth_;
};

}  // namespace

std::string object_key(const ArrayMetadata& metadata, const Dims& chunk) {
  const std::string key = metadata.key_encoding.key(chunk);
  return metadata.path.empty() ? key : metadata.path + "/" + key;
}

std::optional<Dims> chunk_of_key(const ArrayMetadata& metadata, std::string_view key) {
  Dims chunk(metadata.key_encoding.leading, 0);
  for (const std::string& part : split(key, metadata.key_encoding.separator)) {
    const std::optional<std::uint64_t> index = parse_exact_number(part);
    if (index && *index <= INT64_MAX && chunk.size() < metadata.shape.size())
      chunk.push_back(static_cast<std::int64_t>(*index));
  }
  // Keys that do not consist of indices alone, such as "c" and "0" of arrays without dimensions,
  // differ from the chunk's key.
  if (chunk.size() != metadata.shape.size() || metadata.key_encoding.key(chunk) != key)
    return std::nullopt;
  return chunk;
}

bool is_inside(const ChunkGrid& grid, const Dims& chunk) {
  for (std::size_t d = 0; d < chunk.size(); ++d)
    if (chunk[d] >= grid.counts()[d]) return false;
  return true;
}

void list_objects(Store& store, const ArrayMetadata& metadata, const ChunkGrid& grid,
                  const TakeObject& take, const TakeNote& note) {
  Listing(store, metadata, grid, take, note).walk("", 0);
}

std::vector<std::int64_t> chunks_of_positions(const Positions& positions, std::int64_t length) {
  std::vector<std::int64_t> chunks;
  if (positions.size() == 0) return chunks;
  if (positions.is_range()) {
    for (std::int64_t c = positions[0] / length; c <= positions[positions.size() - 1] / length; ++c)
      chunks.push_back(c);
    return chunks;
  }
  for (std::int64_t i = 0; i < positions.size(); ++i) chunks.push_back(positions[i] / length);
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

void for_each_selected(const ChunkGrid& grid, const ChunkSelection& selection,
                       const std::function<bool(const Dims& chunk)>& take) {
  const std::size_t rank = grid.counts().size();
  const auto length = [&](std::size_t d) {
    return selection[d] ? static_cast<std::int64_t>(selection[d]->size()) : grid.counts()[d];
  };
  const auto index = [&](std::size_t d, std::int64_t at) {
    return selection[d] ? (*selection[d])[static_cast<std::size_t>(at)] : at;
  };
  Dims at(rank), chunk(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (length(d) == 0) return;
    chunk[d] = index(d, 0);
  }
  for (;;) {
    if (!take(chunk)) return;
    std::size_t d = rank;
    while (d > 0 && at[d - 1] + 1 == length(d - 1)) {
      at[d - 1] = 0;
      chunk[d - 1] = index(d - 1, 0);
      --d;
    }
    if (d == 0) return;
    chunk[d - 1] = index(d - 1, ++at[d - 1]);
  }
}

std::uint64_t count_selected(const ChunkGrid& grid, const ChunkSelection& selection) {
  std::uint64_t count = 1;  // at most the grid's, which fits
  for (std::size_t d = 0; d < selection.size(); ++d)
    count *= selection[d] ? selection[d]->size() : static_cast<std::uint64_t>(grid.counts()[d]);
  return count;
}

bool is_selected(const ChunkSelection& selection, const Dims& chunk) {
  for (std::size_t d = 0; d < chunk.size(); ++d)
    if (selection[d] && !std::binary_search(selection[d]->begin(), selection[d]->end(), chunk[d]))
      return false;
  return true;
}

}  // namespace batchfs

#include "tools/show/chunk_presence.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/strings.h"
#include "engine/scan/stored_objects.h"

namespace batchfs {

namespace {

/// The cell of place `i` of `all` places, of `cells`.
std::int64_t cell_of(std::int64_t i, std::int64_t all, std::int64_t cells) {
  return static_cast<std::int64_t>(static_cast<__int128>(i) * cells / all);
}

/// How many of `all` places are in each of `cells`.
std::vector<std::int64_t> sizes_of(std::int64_t all, std::int64_t cells) {
  // Cell c begins at the first place i with i * cells / all >= c.
  std::vector<std::int64_t> sizes;
  const auto begin = [&](std::int64_t c) {
    return static_cast<std::int64_t>((static_cast<__int128>(c) * all + cells - 1) / cells);
  };
  for (std::int64_t c = 0; c < cells; ++c) sizes.push_back(begin(c + 1) - begin(c));
  return sizes;
}

void list_into(Store& store, const ArrayMetadata& metadata, const ChunkGrid& grid,
               const PresenceLimits& limits, ChunkPresence& presence) {
  const Dims& counts = grid.counts();
  const std::int64_t length = counts.empty() ? 1 : counts[presence.column_dim];
  const std::int64_t others = presence.objects / length;
  const std::vector<std::int64_t> across = sizes_of(length, presence.columns),
                                  down = sizes_of(others, presence.rows);
  for (const std::int64_t rows : down)
    for (const std::int64_t columns : across) presence.all.push_back(rows * columns);
  presence.found.assign(presence.all.size(), 0);
  bool in_time = true;
  list_objects(
      store, metadata, grid,
      [&](const Dims& chunk, const std::string&) {
        std::int64_t row = 0;
        for (std::size_t d = 0; d < chunk.size(); ++d)
          if (d != presence.column_dim) row = row * counts[d] + chunk[d];
        const std::int64_t column = chunk.empty() ? 0 : chunk[presence.column_dim];
        const std::int64_t cell = cell_of(row, others, presence.rows) * presence.columns +
                                  cell_of(column, length, presence.columns);
        ++presence.found[static_cast<std::size_t>(cell)];
        ++presence.stored;
        in_time = std::chrono::steady_clock::now() < limits.deadline;
        return in_time;
      },
      [](const std::string&, const std::string&) {});
  if (!in_time) presence.why_unknown = "listing them takes too long";
  presence.is_known = in_time;
}

}  // namespace

ChunkPresence chunk_presence(Store& store, const ArrayMetadata& metadata,
                             const PresenceLimits& limits) {
  ChunkPresence presence;
  try {
    const ChunkGrid grid(metadata.shape, metadata.chunk_shape);
    const Dims& counts = grid.counts();
    presence.objects = grid.chunk_count();
    if (presence.objects == 0) {
      presence.why_unknown = "the array has no elements";
      return presence;
    }
    presence.column_dim =
        static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    const std::int64_t length = counts.empty() ? 1 : counts[presence.column_dim];
    presence.columns = std::min(ChunkPresence::kMaxColumns, length);
    presence.rows = std::min(ChunkPresence::kMaxRows, presence.objects / length);
    const std::int64_t most = store.is_local() ? limits.local_objects : limits.remote_objects;
    if (!store.can_list())
      presence.why_unknown = "this server cannot list objects";
    else if (presence.objects > most)
      presence.why_unknown = fmt::format("more than {} are not listed; `batchfs check` reads all",
                                         format_count(static_cast<std::uint64_t>(most)));
    else if (std::chrono::steady_clock::now() >= limits.deadline)
      presence.why_unknown = "listing other arrays took too long";
    else
      list_into(store, metadata, grid, limits, presence);
  } catch (const Error& error) {
    presence.is_known = false;
    presence.why_unknown = error.why();
  }
  return presence;
}

}  // namespace batchfs

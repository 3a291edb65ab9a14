// The lists in batch-….json for a view of one dataset.

#include <algorithm>

#include "engine/array/array.h"
#include "engine/dataset/labels.h"
#include "engine/view/view.h"

namespace batchfs {

void View::write_window(const Dims& starts, JsonWriter& out) const {
  out.begin_object();
  for (std::size_t w = 0; w < window_dims_.size(); ++w) {
    const WindowDim& dim = window_dims_[w];
    const Positions& positions = selected(dim.name);
    const std::int64_t start = starts[w];
    const std::int64_t last = dim.padded ? std::min(start + dim.size, positions.size()) - 1
                                         : (start + dim.size - 1) % positions.size();
    out.key(dim.name);
    out.begin_array();
    out.value(positions[start]);
    out.value(positions[last] + 1);
    out.end_array();
  }
  out.end_object();
}

ProvenanceList View::samples_list(std::int64_t epoch, std::int64_t batch) const {
  return {"samples", false, sample_count(batch),
          [this, epoch, batch](RowRange range, JsonWriter& out) {
            for (const std::int64_t sample : samples_in(epoch, batch, range)) out.value(sample);
          }};
}

ProvenanceList View::windows_list(std::int64_t epoch, std::int64_t batch) const {
  return {"windows", false, row_count(batch),
          [this, epoch, batch](RowRange range, JsonWriter& out) {
            for (const Row& row : rows(epoch, batch, range)) write_window(row.starts, out);
          }};
}

/// Where the samples' windows begin in the selection: what coordinates are looked up with.
ProvenanceList View::starts_list(std::int64_t epoch, std::int64_t batch) const {
  return {"starts", false, sample_count(batch),
          [this, epoch, batch](RowRange range, JsonWriter& out) {
            Dims starts(window_dims_.size());
            for (const std::int64_t sample : samples_in(epoch, batch, range)) {
              starts_of(sample, starts.begin());
              out.begin_array();
              for (const std::int64_t start : starts) out.value(start);
              out.end_array();
            }
          }};
}

std::vector<ProvenanceList> View::provenance_lists(std::int64_t epoch, std::int64_t batch) const {
  std::vector<ProvenanceList> lists{samples_list(epoch, batch), windows_list(epoch, batch),
                                    starts_list(epoch, batch)};
  for (std::size_t w = 0; w < window_dims_.size(); ++w)
    if (const Coordinate* index = index_coordinate(window_dims_[w].name))
      lists.push_back({index->name, true, row_count(batch),
                       [this, epoch, batch, w, index](RowRange range, JsonWriter& out) {
                         for (const Row& row : rows(epoch, batch, range))
                           out.value(label_json(*index->values, row.starts[w]));
                       }});
  return lists;
}

std::vector<ChunkWalk> View::chunk_walks(std::int64_t epoch, std::int64_t batch) const {
  const auto next = [this, epoch, batch, first = std::int64_t{0}]() mutable {
    const RowRange range{first, std::min(kRowsAtATime, row_count(batch) - first)};
    first = range.end();
    return rows(epoch, batch, range);
  };
  std::vector<ChunkWalk> walks;
  walks.emplace_back(variables_, placements_of(batch), next);
  return walks;
}

std::string View::chunk_label(std::uint32_t variable, std::int64_t chunk) const {
  const Array& array = *variables_[variable]->array;
  return source_prefix(*variables_[variable]) + array.chunk_name(array.grid().chunk(chunk));
}

}  // namespace batchfs

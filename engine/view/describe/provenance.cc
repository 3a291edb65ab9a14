#include "engine/view/describe/provenance.h"

#include <algorithm>

#include "engine/array/array.h"
#include "engine/dataset/labels.h"
#include "engine/view/axes.h"
#include "engine/view/rows/mixed_rows.h"
#include "engine/view/sources_spec.h"

namespace batchfs {

namespace {

/// Array indices of a window, first and behind the last, along each window dimension.
void write_window(const ViewAxes& axes, const Dims& starts, JsonWriter& out) {
  out.begin_object();
  for (std::size_t w = 0; w < axes.windows.size(); ++w) {
    const WindowDim& dim = axes.windows[w];
    const Positions& positions = axes.along(dim.name);
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

/// Where the samples' windows begin in the selection: what coordinates are looked up with.
ProvenanceList starts_list(const View& view, std::int64_t epoch, std::int64_t batch) {
  return {"starts", false, view.sample_count(batch),
          [&view, epoch, batch](RowRange range, JsonWriter& out) {
            Dims starts(view.axes().windows.size());
            for (const std::int64_t sample : view.samples_in(epoch, batch, range)) {
              view.starts_of(sample, starts.begin());
              out.begin_array();
              for (const std::int64_t start : starts) out.value(start);
              out.end_array();
            }
          }};
}

/// The windows of a batch's rows, and the labels of their starts.
std::vector<ProvenanceList> window_lists(const View& view, std::int64_t epoch, std::int64_t batch) {
  std::vector<ProvenanceList> lists;
  lists.push_back({"windows", false, view.row_count(batch),
                   [&view, epoch, batch](RowRange range, JsonWriter& out) {
                     for (const Dims& starts : view.window_starts(epoch, batch, range))
                       write_window(view.axes(), starts, out);
                   }});
  lists.push_back(starts_list(view, epoch, batch));
  for (std::size_t w = 0; w < view.axes().windows.size(); ++w)
    if (const ViewCoordinate* index = view.coordinate(view.axes().windows[w].name))
      lists.push_back({index->name, true, view.row_count(batch),
                       [&view, epoch, batch, w, index](RowRange range, JsonWriter& out) {
                         for (const Dims& starts : view.window_starts(epoch, batch, range))
                           out.value(label_json(*index->values, starts[w]));
                       }});
  return lists;
}

/// The component of each sample of a mixture, and its windows there.
std::vector<ProvenanceList> component_lists(const View& view, std::int64_t epoch,
                                            std::int64_t batch) {
  const MixedRows& rows = *view.mixture();
  const std::vector<WindowDim>& windows = view.axes().windows;
  /// `write(sample, own, out)` for each sample; `own`: where its windows begin in its component.
  const auto of_samples = [&](std::string key, bool is_coordinate, auto write) {
    return ProvenanceList{
        std::move(key), is_coordinate, view.row_count(batch),
        [&rows, &windows, epoch, batch, write](RowRange range, JsonWriter& out) {
          Dims own(windows.size());
          for (const MixedRows::Sample& sample : rows.samples_of(epoch, batch, range)) {
            rows.components()[sample.component]->starts_of(sample.number, own.begin());
            write(sample, own, out);
          }
        }};
  };
  using Sample = MixedRows::Sample;
  std::vector<ProvenanceList> lists;
  lists.push_back(
      of_samples("components", false, [&rows](const Sample& sample, const Dims&, JsonWriter& out) {
        out.value(Json(rows.spec().components[sample.component].name));
      }));
  lists.push_back(of_samples(
      "component_samples", false,
      [](const Sample& sample, const Dims&, JsonWriter& out) { out.value(sample.number); }));
  lists.push_back(
      of_samples("windows", false, [&rows](const Sample& sample, const Dims& own, JsonWriter& out) {
        write_window(rows.components()[sample.component]->axes(), own, out);
      }));
  lists.push_back(starts_list(view, epoch, batch));
  for (std::size_t w = 0; w < windows.size(); ++w)
    if (const std::string& dim = windows[w].name; view.coordinate(dim) != nullptr)
      lists.push_back(of_samples(
          dim, true, [&rows, w, &dim](const Sample& sample, const Dims& own, JsonWriter& out) {
            const ViewCoordinate* index = rows.components()[sample.component]->coordinate(dim);
            out.value(label_json(*index->values, own[w]));
          }));
  return lists;
}

}  // namespace

std::vector<ProvenanceList> provenance_lists(const View& view, std::int64_t epoch,
                                             std::int64_t batch) {
  std::vector<ProvenanceList> lists;
  lists.push_back({"samples", false, view.sample_count(batch),
                   [&view, epoch, batch](RowRange range, JsonWriter& out) {
                     for (const std::int64_t sample : view.samples_in(epoch, batch, range))
                       out.value(sample);
                   }});
  for (ProvenanceList& list : view.mixture() != nullptr ? component_lists(view, epoch, batch)
                                                        : window_lists(view, epoch, batch))
    lists.push_back(std::move(list));
  return lists;
}

std::string chunk_label(const View& view, std::uint32_t variable, std::int64_t chunk) {
  if (const MixedRows* mixture = view.mixture()) {
    const std::size_t c = mixture->component_of_variable(variable);
    const std::string& store = mixture->spec().components[c].store;
    return (store.empty() ? "" : store + ":") +
           chunk_label(*mixture->components()[c], variable - mixture->first_parts(c).variable,
                       chunk);
  }
  const Variable& own = *view.variables()[variable];
  return source_prefix(view.spec().document, own) +
         own.array->chunk_name(own.array->grid().chunk(chunk));
}

}  // namespace batchfs

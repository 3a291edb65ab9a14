#include "engine/view/view.h"

#include <algorithm>

#include "engine/view/list/listed_samples.h"
#include "engine/view/mixed_view.h"
#include "engine/view/rows/mixed_rows.h"
#include "engine/view/rows/patch_rows.h"
#include "engine/view/rows/window_rows.h"
#include "engine/view/view_kinds.h"

namespace batchfs {

namespace {

/// Calls `use` with the rows, of whichever kind they are.
template <class Use>
auto visit_rows(const ViewRows& rows, Use&& use) {
  return std::visit([&](const auto& own) { return use(*own); }, rows);
}

template <class Rows>
const Rows* rows_as(const ViewRows& rows) {
  const auto* own = std::get_if<std::shared_ptr<const Rows>>(&rows);
  return own != nullptr ? own->get() : nullptr;
}

}  // namespace

std::shared_ptr<const View> View::parse(std::shared_ptr<const Dataset> dataset,
                                        const std::string& json, const std::string& name,
                                        const std::string& where, const ViewOptions& options) {
  ViewSpec spec = parse_view_spec(json, name, where, options);
  try {
    const auto& variables = dataset->variables();
    if (std::any_of(variables.begin(), variables.end(), [](const Variable& v) {
          return v.array != nullptr && !v.array->store().is_local();
        }))
      dataset->load_index_values();
    return spec.xbatcher ? make_xbatcher_view(std::move(dataset), std::move(spec))
                         : make_window_view(std::move(dataset), std::move(spec));
  } catch (Error& error) {
    throw error.at(where);
  }
}

std::shared_ptr<const View> View::parse(std::shared_ptr<const Dataset> dataset,
                                        const std::string& json, const std::string& name,
                                        const std::string& where) {
  return parse(std::move(dataset), json, name, where, {});
}

const std::string& View::name() const { return spec().name; }
const std::vector<TensorSpec>& View::tensors() const { return tensor_set().specs; }
const std::vector<const Variable*>& View::variables() const { return tensor_set().variables; }

const ViewCoordinate* View::coordinate(const std::string& dim) const {
  for (const ViewCoordinate& coordinate : coordinates())
    if (coordinate.name == dim) return &coordinate;
  return nullptr;
}

std::int64_t View::samples() const {
  return visit_rows(parts_.rows, [](const auto& rows) { return rows.samples(); });
}

std::int64_t View::epoch_samples() const {
  return visit_rows(parts_.rows, [](const auto& rows) { return rows.epoch_samples(); });
}

std::int64_t View::batch_size() const {
  return visit_rows(parts_.rows, [](const auto& rows) { return rows.batch_size(); });
}

std::int64_t View::batches() const {
  return visit_rows(parts_.rows, [](const auto& rows) { return rows.batches(); });
}

std::int64_t View::rank_batches(std::int64_t rank, std::int64_t world) const {
  const std::int64_t all = batches();
  switch (spec().remainder) {
    case ViewSpec::Remainder::keep:
      return rank < all ? (all - rank + world - 1) / world : 0;
    case ViewSpec::Remainder::drop:
      return all / world;
    case ViewSpec::Remainder::pad:
      return (all + world - 1) / world;
  }
  return 0;
}

const WindowRows* View::windows() const { return rows_as<WindowRows>(parts_.rows); }
const PatchRows* View::patches() const { return rows_as<PatchRows>(parts_.rows); }
const MixedRows* View::mixture() const { return rows_as<MixedRows>(parts_.rows); }

std::vector<std::shared_ptr<const View>> View::components() const {
  if (mixture() == nullptr) return {};
  return mixture()->components();
}

const Order* View::order() const { return windows() != nullptr ? &spec().order : nullptr; }

bool View::needs_scan() const {
  return visit_rows(parts_.rows, [](const auto& rows) { return rows.needs_scan(); });
}

std::int64_t View::row_count(std::int64_t batch) const {
  return visit_rows(parts_.rows, [&](const auto& rows) { return rows.row_count(batch); });
}

std::int64_t View::sample_count(std::int64_t batch) const {
  return visit_rows(parts_.rows, [&](const auto& rows) { return rows.sample_count(batch); });
}

std::vector<std::int64_t> View::samples_in(std::int64_t epoch, std::int64_t batch,
                                           RowRange range) const {
  return visit_rows(parts_.rows,
                    [&](const auto& rows) { return rows.samples_in(epoch, batch, range); });
}

std::vector<Dims> View::window_starts(std::int64_t epoch, std::int64_t batch,
                                      RowRange range) const {
  return visit_rows(parts_.rows,
                    [&](const auto& rows) { return rows.starts_in(epoch, batch, range); });
}

void View::starts_of(std::int64_t sample, std::int64_t* starts) const {
  visit_rows(parts_.rows, [&](const auto& rows) { rows.starts_of(sample, starts); });
}

std::vector<std::int64_t> View::batch_windows(std::int64_t epoch, std::int64_t batch) const {
  std::vector<std::int64_t> result = batch_samples(epoch, batch);
  const std::size_t samples = result.size(), dims = axes().windows.size();
  result.resize(samples * (1 + dims));
  for (std::size_t i = 0; i < samples; ++i)
    starts_of(result[i], result.data() + samples + i * dims);
  return result;
}

std::vector<Dims> View::shapes(std::int64_t batch) const {
  const std::int64_t rows = row_count(batch);
  std::vector<Dims> shapes = tensor_set().shapes(rows);
  const auto sizes = windows() != nullptr ? windows()->partial_sizes(batch) : std::nullopt;
  if (!sizes) return shapes;
  std::size_t t = 0;
  for (const TensorLayout& layout : windows()->layouts_of(*sizes)) {
    shapes[t] = layout.spec.shape;
    shapes[t++][0] = rows;
  }
  return shapes;
}

std::int64_t all_windows(const View& view) {
  if (view.windows() != nullptr) return view.windows()->set().all_windows;
  if (view.mixture() == nullptr) return view.samples();
  std::int64_t sum = 0;
  for (const auto& component : view.components())
    if (__builtin_add_overflow(sum, all_windows(*component), &sum)) return INT64_MAX;
  return sum;
}

std::vector<std::pair<std::string, std::int64_t>> dropped_windows(const View& view) {
  if (view.windows() != nullptr) return view.windows()->set().dropped;
  Dropped all;
  for (const auto& component : view.components())
    for (const auto& [restriction, count] : dropped_windows(*component)) {
      const auto known =
          std::find_if(all.begin(), all.end(),
                       [&name = restriction](const auto& each) { return each.first == name; });
      if (known == all.end())
        all.emplace_back(restriction, count);
      else
        known->second += count;
    }
  return all;
}

std::vector<std::string> view_warnings(const View& view) {
  std::vector<std::string> lines;
  if (const MixedRows* mixture = view.mixture()) {
    lines = mixture->warnings();
    for (std::size_t c = 0; c < mixture->components().size(); ++c)
      for (const std::string& line : view_warnings(*mixture->components()[c]))
        lines.push_back(mixture->spec().components[c].name + ": " + line);
  } else if (const WindowRows* windows = view.windows()) {
    if (windows->set().listed != nullptr)
      lines = list_warnings(view.spec());
    else
      visit_windows(view, [&](const RestrictedView& restricted, const ViewScan& scan) {
        lines = gap_warnings(restricted, scan.grid);
      });
    const std::vector<std::string>& of_split = windows->set().warnings;
    lines.insert(lines.end(), of_split.begin(), of_split.end());
  }
  return lines;
}

std::int64_t mixed_samples(const View& view) {
  return view.windows() != nullptr ? view.windows()->sample_order().mixed_samples(view.spec().order)
                                   : 1;
}

std::uint64_t held_by(const View& view) {
  if (view.windows() != nullptr) return view.windows()->held_memory();
  if (view.mixture() == nullptr) return 0;
  std::uint64_t bytes = 0;
  for (const ViewCoordinate& coordinate : view.coordinates()) {
    const ViewCoordinate* own = view.components()[0]->coordinate(coordinate.name);
    if (own == nullptr || own->values != coordinate.values) bytes += coordinate.values->data.size();
  }
  return bytes;
}

std::shared_ptr<const View> with_components(const View& mixture,
                                            std::vector<std::shared_ptr<const View>> components) {
  return make_mixed_view(mixture.mixture()->spec(), std::move(components));
}

}  // namespace batchfs

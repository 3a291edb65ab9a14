#include "engine/view/plan/batch_planner.h"

#include <algorithm>

#include "engine/view/rows/mixed_rows.h"
#include "engine/view/rows/window_rows.h"

namespace batchfs {

namespace {

/// Throws no_memory for lists of a plan that take more than the limit.
void check_limit(const BatchPlan& plan, const PlanBuilder& builder) {
  builder.check(plan.given.size() * sizeof(GivenValue) +
                plan.combined.size() * sizeof(CombinedPart) +
                plan.combined_paddings.size() * sizeof(Padding));
}

/// Adds the values that are given with these samples, each to its row.
void add_given(const TensorSet& set, BatchPlan& plan, const std::vector<Row>& rows,
               std::span<const std::int64_t> samples) {
  for (std::uint32_t t = 0; t < set.specs.size(); ++t) {
    if (set.specs[t].values == nullptr) continue;
    for (std::size_t i = 0; i < rows.size(); ++i)
      plan.given.push_back({t, rows[i].offsets[t], samples[i]});
  }
}

/// The samples of the combinations of a row.
void add_combined(const TensorSet& set, BatchPlan& plan, const Row& row) {
  // Operands of others have higher numbers.
  for (auto c = static_cast<std::uint32_t>(set.combinations.size()); c-- > 0;) {
    const std::uint32_t into = set.combinations[c]->into();
    plan.combined.push_back({c, into, row.offsets[into] + set.combinations[c]->base(),
                             row.offsets[set.specs.size() + c], row.starts});
  }
  for (const ChannelPadding& padding : set.paddings) padding.add_to(plan.combined_paddings, row);
}

/// Adds what a plan takes for some of its rows; `samples` are theirs.
void add_rows(const TensorSet& set, BatchPlan& plan, PlanBuilder& builder,
              const std::vector<Row>& rows, std::span<const std::int64_t> samples) {
  for (const Row& row : rows)
    for (const auto* placements : {&set.placements, &set.more_placements})
      for (const VariablePlacement& placement : *placements) builder.add(placement, row);
  add_given(set, plan, rows, samples);
  for (const Row& row : rows) {
    add_combined(set, plan, row);
    check_limit(plan, builder);
  }
}

void set_offsets(const TensorSet& set, std::int64_t place, Row& row) {
  row.offsets.reserve(set.row_bytes.size());
  for (const std::int64_t bytes : set.row_bytes) row.offsets.push_back(place * bytes);
}

/// The rows of these samples of a view of windows; `place_of(i)` is the row of the i-th in a batch.
template <class PlaceOf>
std::vector<Row> rows_at(const View& view, std::span<const std::int64_t> samples,
                         PlaceOf&& place_of) {
  std::vector<Row> rows(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    rows[i].starts.resize(view.axes().windows.size());
    view.windows()->starts_of(samples[i], rows[i].starts.begin());
    set_offsets(view.tensor_set(), place_of(i), rows[i]);
  }
  return rows;
}

/// Some rows of a batch of one dataset; `samples`: of these rows, for a view of windows.
std::vector<Row> rows_of(const View& view, std::int64_t epoch, std::int64_t batch, RowRange range,
                         std::span<const std::int64_t> samples) {
  const auto place_of = [&](std::size_t i) { return range.first + static_cast<std::int64_t>(i); };
  if (view.windows() != nullptr) return rows_at(view, samples, place_of);
  const std::vector<Dims> starts = view.window_starts(epoch, batch, range);
  std::vector<Row> rows(starts.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].starts = starts[i];
    set_offsets(view.tensor_set(), place_of(i), rows[i]);
  }
  return rows;
}

std::optional<Dims> partial_sizes(const View& view, std::int64_t batch) {
  return view.windows() != nullptr ? view.windows()->partial_sizes(batch) : std::nullopt;
}

/// The plan of a batch whose windows are shorter than the view's: its tensors are smaller.
BatchPlan plan_partial(const View& view, std::int64_t epoch, std::int64_t batch, const Dims& sizes,
                       PlanLimit limit) {
  BatchPlan plan;
  plan.samples = view.batch_samples(epoch, batch);
  const std::vector<TensorLayout> layouts = view.windows()->layouts_of(sizes);
  plan.shapes = view.shapes(batch);
  PlanBuilder builder(view.variables(), limit, plan.samples.size());
  for_each_range(view.row_count(batch), [&](RowRange range) {
    const auto samples = in_range(plan.samples, range);
    const std::vector<Row> full = rows_of(view, epoch, batch, range, samples);
    std::int64_t r = range.first;
    for (Row row : full) {
      for (std::size_t t = 0; t < layouts.size(); ++t) row.offsets[t] = r * layouts[t].sample_bytes;
      for (const TensorLayout& layout : layouts)
        for (const VariablePlacement& placement : layout.placements) builder.add(placement, row);
      ++r;
    }
    add_given(view.tensor_set(), plan, full, samples);
    check_limit(plan, builder);
  });
  builder.finish(plan);
  return plan;
}

BatchPlan plan_mixed(const View& view, std::int64_t epoch, std::int64_t batch, PlanLimit limit) {
  const MixedRows& rows = *view.mixture();
  const std::vector<MixedRows::Sample> samples =
      rows.samples_of(epoch, batch, {0, rows.row_count(batch)});
  BatchPlan plan;
  plan.shapes = view.shapes(batch);
  for (const MixedRows::Sample& sample : samples) plan.samples.push_back(rows.number(sample));
  std::vector<std::int64_t> numbers, places;
  for (std::size_t c = 0; c < rows.components().size(); ++c) {
    numbers.clear(), places.clear();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].component != c) continue;
      numbers.push_back(samples[i].number);
      places.push_back(static_cast<std::int64_t>(i));
    }
    const std::uint64_t taken = plan.parts.size() * sizeof(Part);
    const PlanLimit left{limit.bytes - std::min(limit.bytes, taken)};
    if (!numbers.empty())
      append_plan(plan_samples(*rows.components()[c], numbers, places, left), rows.first_parts(c),
                  static_cast<std::uint32_t>(view.tensors().size()), plan);
  }
  return plan;
}

/// The placements that the plan of a batch of one dataset has.
PlanPlacements placements_of(const View& view, std::int64_t batch) {
  PlanPlacements result;
  if (const auto sizes = partial_sizes(view, batch)) {
    for (TensorLayout& layout : view.windows()->layouts_of(*sizes))
      for (VariablePlacement& placement : layout.placements)
        result.own.push_back(std::move(placement));
    for (const VariablePlacement& placement : result.own) result.all.push_back(&placement);
    return result;
  }
  for (const auto* placements : {&view.tensor_set().placements, &view.tensor_set().more_placements})
    for (const VariablePlacement& placement : *placements) result.all.push_back(&placement);
  return result;
}

/// The chunks of one component of a mixture's batch.
ChunkWalk component_walk(const MixedRows& rows, std::size_t c, std::int64_t epoch,
                         std::int64_t batch) {
  const View& view = *rows.components()[c];
  const auto next = [&rows, &view, epoch, batch, c, first = std::int64_t{0}]() mutable {
    std::vector<Row> own;
    while (own.empty() && first < rows.row_count(batch)) {
      const RowRange range{first, std::min(kRowsAtATime, rows.row_count(batch) - first)};
      first = range.end();
      std::vector<std::int64_t> numbers;
      for (const MixedRows::Sample& sample : rows.samples_of(epoch, batch, range))
        if (sample.component == c) numbers.push_back(sample.number);
      // Where they go in the batch does not matter.
      own = rows_at(view, numbers, [](std::size_t) { return 0; });
    }
    return own;
  };
  return {view.variables(), placements_of(view, batch), next, rows.first_parts(c).variable};
}

}  // namespace

BatchPlan View::plan(std::int64_t epoch, std::int64_t batch, PlanLimit limit) const {
  if (mixture() != nullptr) return plan_mixed(*this, epoch, batch, limit);
  if (const auto sizes = partial_sizes(*this, batch))
    return plan_partial(*this, epoch, batch, *sizes, limit);
  BatchPlan plan;
  plan.samples = batch_samples(epoch, batch);
  plan.shapes = shapes(batch);
  PlanBuilder builder(variables(), limit, plan.samples.size());
  for_each_range(row_count(batch), [&](RowRange range) {
    const auto samples = in_range(plan.samples, range);
    add_rows(tensor_set(), plan, builder, rows_of(*this, epoch, batch, range, samples), samples);
  });
  builder.finish(plan);
  return plan;
}

BatchPlan plan_samples(const View& view, const std::vector<std::int64_t>& samples,
                       const std::vector<std::int64_t>& places, PlanLimit limit) {
  BatchPlan plan;
  plan.samples = samples;
  PlanBuilder builder(view.variables(), limit, samples.size());
  for_each_range(std::ssize(samples), [&](RowRange range) {
    const auto own = in_range(samples, range);
    const auto place_of = [at = in_range(places, range)](std::size_t i) { return at[i]; };
    add_rows(view.tensor_set(), plan, builder, rows_at(view, own, place_of), own);
  });
  builder.finish(plan);
  return plan;
}

std::vector<ChunkWalk> chunk_walks(const View& view, std::int64_t epoch, std::int64_t batch) {
  std::vector<ChunkWalk> walks;
  if (const MixedRows* mixture = view.mixture()) {
    for (std::size_t c = 0; c < mixture->components().size(); ++c)
      walks.push_back(component_walk(*mixture, c, epoch, batch));
    return walks;
  }
  const auto next = [&view, epoch, batch, first = std::int64_t{0}]() mutable {
    const RowRange range{first, std::min(kRowsAtATime, view.row_count(batch) - first)};
    first = range.end();
    std::vector<std::int64_t> samples;
    if (view.windows() != nullptr) samples = view.samples_in(epoch, batch, range);
    return rows_of(view, epoch, batch, range, samples);
  };
  walks.emplace_back(view.variables(), placements_of(view, batch), next);
  return walks;
}

}  // namespace batchfs

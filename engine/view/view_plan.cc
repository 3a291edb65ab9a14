// The plans of a view's batches: their samples, and the boxes that they read from the store.

#include <algorithm>

#include "engine/view/view.h"

namespace batchfs {

std::vector<Dims> View::window_starts(std::int64_t epoch, std::int64_t batch,
                                      RowRange range) const {
  std::vector<Dims> starts;
  for (Row& row : rows(epoch, batch, range)) starts.push_back(std::move(row.starts));
  return starts;
}

std::vector<std::int64_t> View::batch_windows(std::int64_t epoch, std::int64_t batch) const {
  std::vector<std::int64_t> result = batch_samples(epoch, batch);
  const std::size_t samples = result.size(), dims = window_dims_.size();
  result.resize(samples * (1 + dims));
  for (std::size_t i = 0; i < samples; ++i)
    starts_of(result[i], result.data() + samples + i * dims);
  return result;
}

std::vector<Row> View::rows_at(std::span<const std::int64_t> samples,
                               std::span<const std::int64_t> places) const {
  std::vector<Row> rows;
  rows.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Row row;
    row.starts.resize(window_dims_.size());
    starts_of(samples[i], row.starts.begin());
    for (const std::int64_t bytes : sample_bytes_) row.offsets.push_back(places[i] * bytes);
    rows.push_back(std::move(row));
  }
  return rows;
}

PlanPlacements View::placements_of(std::int64_t) const {
  PlanPlacements result;
  for (const auto* placements : {&placements_, &more_placements_})
    for (const VariablePlacement& placement : *placements) result.all.push_back(&placement);
  return result;
}

BatchPlan View::plan(std::int64_t epoch, std::int64_t batch, PlanLimit limit) const {
  BatchPlan plan;
  plan.samples = batch_samples(epoch, batch);
  plan.shapes = shapes(batch);
  PlanBuilder builder(variables_, limit, plan.samples.size());
  for_each_range(row_count(batch), [&](RowRange range) {
    add_rows(plan, builder, rows(epoch, batch, range), in_range(plan.samples, range));
  });
  builder.finish(plan);
  return plan;
}

BatchPlan View::plan_samples(const std::vector<std::int64_t>& samples,
                             const std::vector<std::int64_t>& places, PlanLimit limit) const {
  BatchPlan plan;
  plan.samples = samples;
  PlanBuilder builder(variables_, limit, samples.size());
  for_each_range(std::ssize(samples), [&](RowRange range) {
    const auto own = in_range(samples, range);
    add_rows(plan, builder, rows_at(own, in_range(places, range)), own);
  });
  builder.finish(plan);
  return plan;
}

void View::check_limit(const BatchPlan& plan, const PlanBuilder& builder) {
  builder.check(plan.given.size() * sizeof(GivenValue) +
                plan.combined.size() * sizeof(CombinedPart) +
                plan.combined_paddings.size() * sizeof(Padding));
}

void View::add_rows(BatchPlan& plan, PlanBuilder& builder, const std::vector<Row>& rows,
                    std::span<const std::int64_t> samples) const {
  for (const Row& row : rows)
    for (const auto* placements : {&placements_, &more_placements_})
      for (const VariablePlacement& placement : *placements) builder.add(placement, row);
  add_given(plan, rows, samples);
  for (const Row& row : rows) {
    add_combined(plan, row);
    check_limit(plan, builder);
  }
}

void View::add_given(BatchPlan& plan, const std::vector<Row>& rows,
                     std::span<const std::int64_t> samples) const {
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].values == nullptr) continue;
    for (std::size_t i = 0; i < rows.size(); ++i)
      plan.given.push_back({t, rows[i].offsets[t], samples[i]});
  }
}

}  // namespace batchfs

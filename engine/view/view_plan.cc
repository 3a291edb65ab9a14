// The plans of a view's batches: their samples, and the boxes that they read from the store.

#include <algorithm>

#include "engine/view/view.h"

namespace batchfs {

std::vector<Dims> View::window_starts(std::int64_t epoch, std::int64_t batch) const {
  std::vector<Dims> starts;
  for (Row& row : rows(epoch, batch)) starts.push_back(std::move(row.starts));
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

std::vector<Row> View::rows_at(const std::vector<std::int64_t>& samples,
                               const std::vector<std::int64_t>& places) const {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Row row;
    row.starts.resize(window_dims_.size());
    starts_of(samples[i], row.starts.begin());
    for (const std::int64_t bytes : sample_bytes_) row.offsets.push_back(places[i] * bytes);
    rows.push_back(std::move(row));
  }
  return rows;
}

BatchPlan View::plan(std::int64_t epoch, std::int64_t batch) const {
  BatchPlan plan = plan_rows(batch_samples(epoch, batch), rows(epoch, batch));
  plan.shapes = shapes(batch);
  return plan;
}

BatchPlan View::plan_samples(const std::vector<std::int64_t>& samples,
                             const std::vector<std::int64_t>& places) const {
  return plan_rows(samples, rows_at(samples, places));
}

BatchPlan View::plan_rows(std::vector<std::int64_t> samples, const std::vector<Row>& rows) const {
  BatchPlan plan;
  plan.samples = std::move(samples);
  PlanBuilder builder(variables_);
  for (const Row& row : rows)
    for (const auto* placements : {&placements_, &more_placements_})
      for (const VariablePlacement& placement : *placements) builder.add(placement, row);
  builder.finish(plan);
  add_given(plan, rows);
  for (const Row& row : rows) add_combined(plan, row);
  return plan;
}

void View::add_given(BatchPlan& plan, const std::vector<Row>& rows) const {
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].values == nullptr) continue;
    for (std::size_t i = 0; i < rows.size(); ++i)
      plan.given.push_back({t, rows[i].offsets[t], plan.samples[i]});
  }
}

Json View::window_json(const Dims& starts) const {
  Json window = Json::object();
  for (std::size_t w = 0; w < window_dims_.size(); ++w) {
    const WindowDim& dim = window_dims_[w];
    const Positions& positions = selected(dim.name);
    const std::int64_t start = starts[w];
    const std::int64_t last = dim.padded ? std::min(start + dim.size, positions.size()) - 1
                                         : (start + dim.size - 1) % positions.size();
    window[dim.name] = {positions[start], positions[last] + 1};
  }
  return window;
}

}  // namespace batchfs

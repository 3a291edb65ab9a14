#include "engine/view/rows/window_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/rows/held_lists.h"
#include "engine/view/tensors/tensor_definitions.h"

namespace batchfs {

WindowRows::WindowRows(std::shared_ptr<const ViewSpec> spec, const SampleOrder::Inputs& values,
                       std::shared_ptr<const SampleOrder> order)
    : spec_(std::move(spec)), values_(values), order_(std::move(order)) {
  for (const WindowDim& window : values_.axes->windows) sizes_.push_back(window.size);
  has_partial_ = std::any_of(
      spec_->window.begin(), spec_->window.end(),
      [](const WindowSpec& window) { return window.edge == WindowSpec::Edge::partial; });
  check_batches(*spec_, samples());
}

std::int64_t WindowRows::batches() const {
  return spec_->remainder == ViewSpec::Remainder::drop
             ? epoch_samples() / spec_->batch_size
             : (epoch_samples() + spec_->batch_size - 1) / spec_->batch_size;
}

std::int64_t WindowRows::row_count(std::int64_t batch) const {
  if (spec_->remainder == ViewSpec::Remainder::pad) return spec_->batch_size;
  return std::max<std::int64_t>(
      0, std::min(spec_->batch_size, epoch_samples() - batch * spec_->batch_size));
}

std::vector<std::int64_t> WindowRows::samples_in(std::int64_t epoch, std::int64_t batch,
                                                 RowRange range) const {
  if (needs_scan()) throw Error(ErrorCode::internal, "the samples of this view are not known yet");
  std::vector<std::int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(range.count));
  for (std::int64_t i = range.first; i < range.end(); ++i)
    numbers.push_back(sample_at((batch * spec_->batch_size + i) % epoch_samples(), epoch));
  return numbers;
}

std::vector<Dims> WindowRows::starts_in(std::int64_t epoch, std::int64_t batch,
                                        RowRange range) const {
  std::vector<Dims> result;
  result.reserve(static_cast<std::size_t>(range.count));
  for (const std::int64_t sample : samples_in(epoch, batch, range))
    starts_of(sample, result.emplace_back(sizes_.size()).begin());
  return result;
}

std::optional<Dims> WindowRows::partial_sizes(std::int64_t batch) const {
  if (!has_partial_ || row_count(batch) == 0) return std::nullopt;
  Dims sizes = sizes_;
  for (std::size_t w = 0; w < sizes_.size(); ++w)
    if (spec_->window[w].edge == WindowSpec::Edge::partial) sizes[w] = 1;
  // Without a shuffle, so that epochs do not differ.
  for_each_range(row_count(batch), [&](RowRange range) {
    for (const Dims& starts : starts_in(0, batch, range)) cover(starts, sizes);
  });
  return sizes == sizes_ ? std::nullopt : std::optional(sizes);
}

/// Makes the sizes as long as what a row's windows have inside the selection.
void WindowRows::cover(const Dims& starts, Dims& sizes) const {
  for (std::size_t w = 0; w < sizes_.size(); ++w) {
    const std::string& dim = values_.axes->windows[w].name;
    std::int64_t first = starts[w] + offset_range(values_.tensors->definitions, dim).first;
    for (const Reach::Labelled& each : set().reaches[w].labelled)
      for (std::size_t o = 0; o < each.labels->size(); ++o)
        if (each.restriction == "offsets")
          first = std::min(first, each.labels->first(o, starts[w]));
    const std::int64_t inside = values_.axes->along(dim).size() - first;
    sizes[w] = std::max(sizes[w], std::min(sizes_[w], inside));
  }
}

std::vector<TensorLayout> WindowRows::layouts_of(const Dims& sizes) const {
  std::vector<TensorLayout> layouts;
  for (std::uint32_t t = 0; t < values_.tensors->definitions.size(); ++t)
    layouts.push_back(lay_out(values_.tensors->source(t, *values_.axes, spec_->batch_size), sizes));
  return layouts;
}

std::uint64_t WindowRows::held_memory() const {
  return held_bytes({*spec_, values_.axes->selected, set().grid, order_->groups(),
                     set().index.get(), set().allowed.get(), set().list(), order_->by(), samples(),
                     epoch_samples()});
}

void check_batches(const ViewSpec& spec, std::int64_t samples) {
  const std::int64_t of_epoch = spec.epoch_samples.value_or(samples);
  const bool drops = spec.remainder == ViewSpec::Remainder::drop;
  if (of_epoch == 0 || (drops && of_epoch < spec.batch_size))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "batch.remainder: \"drop\" leaves no batch: there are {} samples, a batch has {}",
            of_epoch, spec.batch_size));
}

}  // namespace batchfs

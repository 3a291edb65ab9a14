#include "engine/view/rows/mixed_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/view/rows/window_rows.h"

namespace batchfs {

MixedRows::MixedRows(MixSpec spec, MixSchedule schedule,
                     std::vector<std::shared_ptr<const View>> components,
                     std::vector<FirstParts> firsts,
                     std::vector<std::vector<std::int64_t>> first_positions,
                     std::vector<std::string> warnings)
    : spec_(std::move(spec)),
      components_(std::move(components)),
      schedule_(std::move(schedule)),
      firsts_(std::move(firsts)),
      first_positions_(std::move(first_positions)),
      warnings_(std::move(warnings)) {
  samples_ = firsts_.back().sample + components_.back()->samples();
  if (batches() == 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "batch.remainder: \"drop\" leaves no batch: an epoch has {} samples, a batch has {}",
            epoch_samples(), batch_size()));
}

std::size_t MixedRows::component_of_variable(std::uint32_t variable) const {
  const auto after = std::upper_bound(
      firsts_.begin(), firsts_.end(), variable,
      [](std::uint32_t number, const FirstParts& each) { return number < each.variable; });
  return static_cast<std::size_t>(after - firsts_.begin() - 1);
}

std::int64_t MixedRows::batches() const {
  if (by_batch()) return schedule_.positions();
  const bool drops = spec_.view.remainder == ViewSpec::Remainder::drop;
  return epoch_samples() / batch_size() + (!drops && epoch_samples() % batch_size() != 0 ? 1 : 0);
}

std::int64_t MixedRows::row_count(std::int64_t batch) const {
  if (by_batch() || spec_.view.remainder == ViewSpec::Remainder::pad) return batch_size();
  return std::max<std::int64_t>(0, std::min(batch_size(), epoch_samples() - batch * batch_size()));
}

bool MixedRows::needs_scan() const {
  return std::any_of(components_.begin(), components_.end(),
                     [](const auto& view) { return view->needs_scan(); });
}

/// The sample at an ordinal of the schedule: the epochs of a component follow each other.
MixedRows::Sample MixedRows::sample_of(std::size_t component, unsigned __int128 scheduled) const {
  const WindowRows& rows = *components_[component]->windows();
  const unsigned __int128 ordinal = spec_.components[component].start.ordinal(scheduled);
  const auto length = static_cast<unsigned __int128>(rows.epoch_samples());
  const auto epoch = static_cast<std::int64_t>(static_cast<std::uint64_t>(ordinal / length) &
                                               static_cast<std::uint64_t>(INT64_MAX));
  return {component, rows.sample_at(static_cast<std::int64_t>(ordinal % length), epoch)};
}

std::vector<MixedRows::Sample> MixedRows::samples_of(std::int64_t epoch, std::int64_t batch,
                                                     RowRange range) const {
  if (needs_scan()) throw Error(ErrorCode::internal, "the samples of this view are not known yet");
  std::vector<Sample> samples;
  if (by_batch()) {
    const MixSchedule::Place place = schedule_.places(batch, 1, epoch).front();
    const auto size = static_cast<unsigned __int128>(batch_size());
    for (std::int64_t i = range.first; i < range.end(); ++i)
      samples.push_back(
          sample_of(place.component, place.ordinal * size + static_cast<unsigned __int128>(i)));
    return samples;
  }
  for (const MixSchedule::Place& place :
       schedule_.places(batch * batch_size() + range.first, range.count, epoch))
    samples.push_back(sample_of(place.component, place.ordinal));
  return samples;
}

std::vector<std::int64_t> MixedRows::samples_in(std::int64_t epoch, std::int64_t batch,
                                                RowRange range) const {
  std::vector<std::int64_t> numbers;
  for (const Sample& sample : samples_of(epoch, batch, range)) numbers.push_back(number(sample));
  return numbers;
}

void MixedRows::starts_of(std::int64_t sample, std::int64_t* starts) const {
  const auto after = std::upper_bound(
      firsts_.begin(), firsts_.end(), sample,
      [](std::int64_t number, const FirstParts& each) { return number < each.sample; });
  const auto c = static_cast<std::size_t>(after - firsts_.begin() - 1);
  components_[c]->starts_of(sample - firsts_[c].sample, starts);
  for (std::size_t w = 0; w < first_positions_.size(); ++w) starts[w] += first_positions_[w][c];
}

std::vector<Dims> MixedRows::starts_in(std::int64_t epoch, std::int64_t batch,
                                       RowRange range) const {
  std::vector<Dims> result;
  result.reserve(static_cast<std::size_t>(range.count));
  for (const std::int64_t sample : samples_in(epoch, batch, range))
    starts_of(sample, result.emplace_back(first_positions_.size()).begin());
  return result;
}

}  // namespace batchfs

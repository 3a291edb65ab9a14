#include "engine/view/rows/sample_order.h"

#include <algorithm>
#include <cmath>

#include "engine/view/list/list_groups.h"
#include "engine/view/view_limits.h"

namespace batchfs {

SampleOrder::SampleOrder(const Inputs& inputs, ViewSpec& spec, std::shared_ptr<const Draws> draws)
    : in_(inputs), draws_(std::move(draws)) {
  by_ = source_chunks(spec, *in_.dataset, in_.tensors->variables, in_.axes->selected,
                      in_.axes->joined);
  define_groups(spec);
  if (spec.weights) {
    define_draws(spec);
    return;
  }
  const std::int64_t samples = in_.samples->samples;
  order_ = std::make_unique<EpochOrder>(
      spec.order, groups_,
      EpochOrder::Sizes{samples, spec.epoch_samples.value_or(samples), spec.batch_size},
      in_.samples->index);
}

void SampleOrder::define_groups(ViewSpec& spec) {
  const SampleSet& set = *in_.samples;
  if (set.listed == nullptr) {
    groups_ = chunk_groups(windowed(), spec.span);
  } else if (spec.order.shuffle == Order::Shuffle::block && !spec.weights) {
    constexpr std::uint64_t kSorted = 3 * sizeof(std::uint32_t);  // a row's, in place and sorted
    check_list(*in_.dataset, static_cast<std::uint64_t>(set.samples) * kSorted, "order.shuffle",
               "the places of the list's rows");
    SequenceGroups rows =
        group_sequence(GroupNumbers(windowed(), spec.span), set.samples, in_.axes->windows.size(),
                       [&set](std::int64_t row, std::int64_t* starts) { set.starts(row, starts); });
    groups_ = std::move(rows.groups);
    places_ = std::move(rows.places);
  } else {
    groups_.axes.push_back({set.samples, 0, set.samples});
  }
  if (spec.order.buffer == 0)
    spec.order.buffer = set.listed != nullptr ? default_list_mixing(windowed(), spec.span)
                                              : default_mixing(windowed(), groups_);
}

void SampleOrder::define_draws(ViewSpec& spec) {
  const SampleSet& set = *in_.samples;
  if (draws_ == nullptr)
    draws_ = sample_draws(
        spec, set.listing(*in_.dataset, *in_.axes), set.listed.get(), set.samples,
        [&set](std::int64_t sample, std::int64_t* starts) { set.starts(sample, starts); });
  const auto group = [this, span = spec.span, order = spec.order](std::int64_t count,
                                                                  const auto& sample) {
    GroupNumbers numbers(windowed(), span);
    if (order.home) numbers.deal(order.seed);
    return group_sequence(
        numbers, count, in_.axes->windows.size(),
        [&](std::int64_t i, std::int64_t* starts) { in_.samples->starts(sample(i), starts); });
  };
  weighted_ = std::make_unique<WeightedOrder>(
      spec.order,
      EpochOrder::Sizes{set.samples, spec.epoch_samples.value_or(set.samples), spec.batch_size},
      draws_, group);
}

std::int64_t SampleOrder::mixed_samples(const Order& order) const {
  const SampleSet& set = *in_.samples;
  switch (order.shuffle) {
    case Order::Shuffle::none:
      return 1;
    case Order::Shuffle::global:
      return set.samples;
    case Order::Shuffle::block:
      break;
  }
  const std::int64_t groups = order.home ? groups_.count() / order.lanes : groups_.count();
  const std::int64_t runs = std::min(order.buffer, groups);
  if (!set.index && !groups_.is_uneven())
    return std::max<std::int64_t>(1, runs * groups_.group_samples());
  // For skipped windows, as many in a run as elsewhere; for groups, those of mean size.
  const double kept = static_cast<double>(set.samples) / static_cast<double>(set.windows);
  const double size =
      static_cast<double>(groups_.in_groups()) / static_cast<double>(groups_.count());
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(runs) * size * kept));
}

}  // namespace batchfs

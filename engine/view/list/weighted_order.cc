#include "engine/view/list/weighted_order.h"

#include <fmt/format.h>

#include "engine/base/counted.h"
#include "engine/view/order/lanes.h"
#include "engine/view/order/skipping_order.h"

namespace batchfs {

namespace {

/// The reader of one epoch and the prefetcher, which may be in the next one.
constexpr std::size_t kDrawnEpochsKept = 3;
/// The block order of an epoch takes 4 bytes for each of them.
constexpr std::int64_t kMaxBlockDraws = INT64_C(1) << 28;
constexpr std::uint64_t kDrawStream = 4;

}  // namespace

struct WeightedOrder::BlockOrder {
  std::vector<std::uint32_t> places;
  SkippingBlockOrder order;
};

WeightedOrder::WeightedOrder(const Order& order, EpochOrder::Sizes sizes,
                             std::shared_ptr<const Draws> draws, Group group)
    : order_(order), sizes_(sizes), draws_(std::move(draws)), group_(std::move(group)) {
  if (order_.home)
    throw Error(
        ErrorCode::invalid_argument,
        "order.home: with \"weights\" epochs have different samples; leave one of them out");
  if (order_.shuffle == Order::Shuffle::block && sizes_.epoch_samples > kMaxBlockDraws)
    throw Error(
        ErrorCode::not_supported,
        fmt::format("order.shuffle: \"block\" with \"weights\" takes at most {}; an epoch "
                    "has {}",
                    counted(kMaxBlockDraws, "sample"), counted(sizes_.epoch_samples, "sample")));
}

std::shared_ptr<const WeightedOrder::BlockOrder> WeightedOrder::block_order(std::int64_t epoch,
                                                                            double u) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, order] : epochs_)
    if (known == epoch) return order;
  SequenceGroups sequence = group_(sizes_.epoch_samples, [&](std::int64_t j) {
    return draws_->sample(j, sizes_.epoch_samples, u);
  });
  if (epochs_.size() == kDrawnEpochsKept) epochs_.erase(epochs_.begin());
  epochs_.emplace_back(
      epoch, std::shared_ptr<const BlockOrder>(
                 new BlockOrder{std::move(sequence.places),
                                SkippingBlockOrder(order_, std::move(sequence.groups), nullptr)}));
  return epochs_.back().second;
}

std::int64_t WeightedOrder::sample(std::int64_t i, std::int64_t epoch) const {
  const std::int64_t draws = sizes_.epoch_samples;
  i = position_without_lanes(i, draws, sizes_.batch_size, order_.lanes);
  const double u = Draws::uniform(order_.seed, epoch);
  std::int64_t j = i;
  switch (order_.shuffle) {
    case Order::Shuffle::none:
      break;
    case Order::Shuffle::global:
      j = Permutation(draws, order_.seed, static_cast<std::uint64_t>(epoch), kDrawStream)(i);
      break;
    case Order::Shuffle::block: {
      const auto block = block_order(epoch, u);
      j = block->places[static_cast<std::size_t>(block->order.window(i, epoch))];
      break;
    }
  }
  return draws_->sample(j, draws, u);
}

}  // namespace batchfs

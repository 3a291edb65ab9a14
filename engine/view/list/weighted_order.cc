#include "engine/view/list/weighted_order.h"

#include <algorithm>

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

/// The block order of one epoch's draws. With "home" it has parts: each lane, and the draws that
/// are left over when lanes are whole batches.
class WeightedOrder::BlockOrder {
 public:
  BlockOrder(const Order& order, const EpochOrder::Sizes& sizes, SequenceGroups draws)
      : places_(std::move(draws.places)), order_(order), batch_size_(sizes.batch_size) {
    const std::vector<std::int64_t>& bounds = draws.groups.axes.front().bounds;
    if (!order_.home) {
      add_part(order_.seed, bounds, 0, sizes.epoch_samples);
      return;
    }
    in_lane_ = sizes.epoch_samples / batch_size_ / order_.lanes * batch_size_;
    const std::int64_t lanes = in_lane_ > 0 ? order_.lanes : 0;
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      add_part(lane_seed(order_.seed, lane), bounds, lane * in_lane_, (lane + 1) * in_lane_);
    add_part(order_.seed, bounds, lanes * in_lane_, sizes.epoch_samples);
  }

  /// Which draw is at position i, counted with the lanes of "home", and without other lanes.
  std::int64_t draw(std::int64_t i, std::int64_t epoch) const {
    std::int64_t part = 0;
    if (order_.home && i < order_.lanes * in_lane_) {
      part = i / batch_size_ % order_.lanes;
      i = i / batch_size_ / order_.lanes * batch_size_ + i % batch_size_;
    } else if (order_.home) {
      part = static_cast<std::int64_t>(parts_.size()) - 1;
      i -= part * in_lane_;
    }
    const Part& of = parts_[static_cast<std::size_t>(part)];
    return places_[static_cast<std::size_t>(of.begin + of.order->window(i, epoch))];
  }

 private:
  struct Part {
    std::int64_t begin;
    std::unique_ptr<const SkippingBlockOrder> order;
  };

  /// Places `begin` to `end`, in groups whose ends `bounds` has.
  void add_part(std::uint64_t seed, const std::vector<std::int64_t>& bounds, std::int64_t begin,
                std::int64_t end) {
    std::vector<std::int64_t> inside{0};
    for (auto bound = std::upper_bound(bounds.begin(), bounds.end(), begin);
         bound != bounds.end() && *bound < end; ++bound)
      inside.push_back(*bound - begin);
    if (end > begin) inside.push_back(end - begin);
    Order order = order_;
    order.seed = seed;
    ChunkGroups groups;
    groups.axes.push_back({end - begin, 0, 1, std::move(inside)});
    parts_.push_back(
        {begin, std::make_unique<const SkippingBlockOrder>(order, std::move(groups), nullptr)});
  }

  const std::vector<std::uint32_t> places_;
  const Order order_;
  const std::int64_t batch_size_;
  std::int64_t in_lane_ = 0;
  std::vector<Part> parts_;
};

WeightedOrder::WeightedOrder(const Order& order, EpochOrder::Sizes sizes,
                             std::shared_ptr<const Draws> draws, Group group)
    : order_(order), sizes_(sizes), draws_(std::move(draws)), group_(std::move(group)) {
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
  epochs_.emplace_back(epoch,
                       std::make_shared<const BlockOrder>(order_, sizes_, std::move(sequence)));
  return epochs_.back().second;
}

std::int64_t WeightedOrder::sample(std::int64_t i, std::int64_t epoch) const {
  const std::int64_t draws = sizes_.epoch_samples;
  if (!order_.home) i = position_without_lanes(i, draws, sizes_.batch_size, order_.lanes);
  const double u = Draws::uniform(order_.seed, epoch);
  std::int64_t j = i;
  switch (order_.shuffle) {
    case Order::Shuffle::none:
      break;
    case Order::Shuffle::global:
      j = Permutation(draws, order_.seed, static_cast<std::uint64_t>(epoch), kDrawStream)(i);
      break;
    case Order::Shuffle::block:
      j = block_order(epoch, u)->draw(i, epoch);
      break;
  }
  return draws_->sample(j, draws, u);
}

}  // namespace batchfs

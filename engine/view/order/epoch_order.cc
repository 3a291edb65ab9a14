#include "engine/view/order/epoch_order.h"

#include "engine/view/order/lanes.h"

namespace batchfs {

EpochOrder::EpochOrder(const Order& order, ChunkGroups groups, Sizes sizes,
                       std::shared_ptr<const SampleIndex> kept)
    : order_(order), groups_(std::move(groups)), sizes_(sizes), kept_(std::move(kept)) {
  if (order_.shuffle != Order::Shuffle::block) return;
  if (order_.home)
    home_ = std::make_unique<HomeOrder>(order_, groups_, sizes_.batch_size, kept_.get());
  else if (kept_ != nullptr || groups_.is_uneven())
    skipping_ = std::make_unique<SkippingBlockOrder>(order_, groups_, kept_.get());
}

std::int64_t EpochOrder::sample(std::int64_t i, std::int64_t epoch) const {
  if (home_ == nullptr)
    i = position_without_lanes(i, sizes_.epoch_samples, sizes_.batch_size, order_.lanes);
  std::int64_t pass = epoch;
  if (sizes_.epoch_samples != sizes_.samples) {
    const auto samples = static_cast<unsigned __int128>(sizes_.samples);
    const auto at = static_cast<unsigned __int128>(epoch) *
                        static_cast<unsigned __int128>(sizes_.epoch_samples) +
                    static_cast<unsigned __int128>(i);
    pass = static_cast<std::int64_t>(at / samples);
    i = static_cast<std::int64_t>(at % samples);
  }
  const auto number = [this](std::int64_t window) {
    return kept_ != nullptr ? kept_->samples_before(window) : window;
  };
  if (home_ != nullptr) return number(home_->window(i, pass));
  if (skipping_ != nullptr) return number(skipping_->window(i, pass));
  return order_.sample(i, sizes_.samples, pass, groups_);
}

}  // namespace batchfs

#include "engine/view/order/home_order.h"

#include <algorithm>

#include "engine/view/order/skipping_order.h"

namespace batchfs {

namespace {

/// The reader of one epoch and the prefetcher, which may be in the next one.
constexpr std::size_t kPassesKept = 4;
constexpr std::uint64_t kFirstLaneStream = 7;

}  // namespace

HomeOrder::HomeOrder(const Order& order, ChunkGroups groups, std::int64_t batch_size,
                     const SampleIndex* kept)
    : order_(order),
      groups_(std::move(groups)),
      batch_size_(batch_size),
      by_place_(kept ? std::optional(samples_by_place(*kept, groups_)) : std::nullopt),
      even_(kept == nullptr && !groups_.is_uneven()),
      samples_(kept ? kept->samples() : groups_.samples()),
      group_count_(groups_.count()),
      lane_groups_(group_count_ / order.lanes),
      deal_(home_deal(group_count_, order.seed)),
      dealt_(group_count_, groups_, by_place(), [this](std::int64_t k) { return deal_(k); }) {
  cut_lanes();
}

void HomeOrder::cut_lanes() {
  const std::int64_t lanes = order_.lanes;
  if (even_) {
    lane_batches_ = lane_groups_ * groups_.group_samples() / batch_size_;
  } else if (lane_groups_ > 0) {
    std::int64_t least = samples_;
    for (std::int64_t l = 0; l < lanes; ++l)
      least =
          std::min(least, dealt_.before((l + 1) * lane_groups_) - dealt_.before(l * lane_groups_));
    lane_batches_ = least / batch_size_;
    const std::int64_t cut = lane_batches_ * batch_size_;
    ends_before_.push_back(0);
    for (std::int64_t l = 0; l < lanes; ++l) {
      const std::int64_t first = l * lane_groups_, begin = dealt_.before(first);
      const std::int64_t end = dealt_.before(first + lane_groups_);
      whole_.push_back(begin + cut < end ? dealt_.find(begin + cut).first - first : lane_groups_);
      ends_before_.push_back(ends_before_.back() + end - begin - cut);
    }
  }
  rest_batches_ = (samples_ - lanes * lane_batches_ * batch_size_) / batch_size_ / lanes;
}

std::shared_ptr<const HomeOrder::Lane> HomeOrder::make_lane(std::int64_t lane,
                                                            std::int64_t pass) const {
  const std::int64_t samples = lane_batches_ * batch_size_, first = lane * lane_groups_;
  const std::int64_t whole =
      even_ ? samples / groups_.group_samples() : whole_[static_cast<std::size_t>(lane)];
  const bool cut = samples > dealt_.before(first + whole) - dealt_.before(first);
  const Permutation inside(whole, order_.seed, static_cast<std::uint64_t>(pass),
                           kFirstLaneStream + static_cast<std::uint64_t>(lane));
  const std::int64_t count = whole + (cut ? 1 : 0);
  return std::make_shared<const Lane>(Lane{
      count, GroupCounts(count, groups_, by_place(), [this, first, whole, inside](std::int64_t k) {
        return deal_(first + (k < whole ? inside(k) : whole));
      })});
}

std::shared_ptr<const HomeOrder::Lane> HomeOrder::lane(std::int64_t lane, std::int64_t pass) const {
  if (even_) return make_lane(lane, pass);
  const std::lock_guard lock(mutex_);
  auto known = std::find_if(passes_.begin(), passes_.end(),
                            [pass](const auto& each) { return each.first == pass; });
  if (known == passes_.end()) {
    if (passes_.size() == kPassesKept) passes_.erase(passes_.begin());
    passes_.emplace_back(pass, static_cast<std::size_t>(order_.lanes));
    known = passes_.end() - 1;
  }
  auto& found = known->second[static_cast<std::size_t>(lane)];
  if (found == nullptr) found = make_lane(lane, pass);
  return found;
}

std::int64_t HomeOrder::place_in_lane(std::int64_t lane, std::int64_t i, std::int64_t pass) const {
  const std::shared_ptr<const Lane> of_pass = HomeOrder::lane(lane, pass);
  const GroupCounts& counts = of_pass->counts;
  const std::int64_t run_groups = std::min(order_.buffer, of_pass->groups);
  const std::int64_t run = counts.find(i).first / run_groups;
  const std::int64_t next = std::min((run + 1) * run_groups, of_pass->groups);
  const std::int64_t begin = counts.before(run * run_groups);
  // The last group may have more samples than the lane has of it.
  const std::int64_t end = std::min(counts.before(next), lane_batches_ * batch_size_);
  return counts.place(begin + Permutation(end - begin, lane_seed(order_.seed, lane),
                                          static_cast<std::uint64_t>(pass),
                                          2 + static_cast<std::uint64_t>(run))(i - begin));
}

std::int64_t HomeOrder::place_of_rest(std::int64_t i) const {
  const std::int64_t in_groups = dealt_.before(group_count_), outside = samples_ - in_groups;
  if (i < outside) return by_place_ ? by_place_->window(in_groups + i) : in_groups + i;
  i -= outside;
  if (lane_batches_ == 0) return dealt_.place(i);
  const std::int64_t cut = lane_batches_ * batch_size_;
  const std::int64_t end = even_ ? lane_groups_ * groups_.group_samples() - cut : 0;
  const std::int64_t ends = even_ ? order_.lanes * end : ends_before_.back();
  if (i >= ends) return dealt_.place(dealt_.before(order_.lanes * lane_groups_) + i - ends);
  std::int64_t lane = 0, before = 0;
  if (even_) {
    lane = i / end;
    before = lane * end;
  } else {
    lane = std::upper_bound(ends_before_.begin(), ends_before_.end(), i) - ends_before_.begin() - 1;
    before = ends_before_[static_cast<std::size_t>(lane)];
  }
  return dealt_.place(dealt_.before(lane * lane_groups_) + cut + i - before);
}

std::int64_t HomeOrder::window(std::int64_t i, std::int64_t pass) const {
  const auto e = static_cast<std::uint64_t>(pass);
  const std::int64_t lanes = order_.lanes, lane = i / batch_size_ % lanes;
  const std::int64_t in_lane = i / batch_size_ / lanes * batch_size_ + i % batch_size_;
  const std::int64_t cut = lane_batches_ * batch_size_, piece = rest_batches_ * batch_size_;
  if (i < lanes * cut) return groups_.sample(place_in_lane(lane, in_lane, pass));
  if (i < lanes * (cut + piece))
    return groups_.sample(place_of_rest(
        lane * piece + Permutation(piece, lane_seed(order_.seed, lane), e, 1)(in_lane - cut)));
  const std::int64_t last = lanes * piece, count = samples_ - lanes * cut - last;
  return groups_.sample(
      place_of_rest(last + Permutation(count, order_.seed, e, 1)(i - lanes * (cut + piece))));
}

}  // namespace batchfs

#include "engine/view/order/order.h"

#include <algorithm>

namespace batchfs {

namespace {

constexpr std::uint64_t kGolden = UINT64_C(0x9e3779b97f4a7c15);

/// Sample number k of those that belong to no whole group.
std::int64_t outside_groups(std::int64_t k, const std::vector<ChunkGroups::Axis>& axes) {
  std::vector<std::int64_t> choices;
  for (std::size_t outside = 0;; ++outside) {
    choices.clear();
    std::int64_t count = 1;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::int64_t inside = axes[a].inside();
      choices.push_back(a < outside    ? inside
                        : a == outside ? axes[a].positions - inside
                                       : axes[a].positions);
      count *= choices.back();
    }
    if (k >= count) {
      k -= count;
      continue;
    }
    std::int64_t sample = 0, step = 1;
    for (std::size_t a = axes.size(); a-- > 0;) {
      std::int64_t position = k % choices[a];
      k /= choices[a];
      if (a < outside)
        position += axes[a].lead;
      else if (a == outside && position >= axes[a].lead)
        position += axes[a].inside();
      sample += step * position;
      step *= axes[a].positions;
    }
    return sample;
  }
}

/// The sample at a place in groups of several sizes.
std::int64_t sample_of_uneven(std::int64_t place, const std::vector<ChunkGroups::Axis>& axes,
                              std::int64_t in_groups) {
  std::vector<std::int64_t> first, sizes;  // of the group, along each axis
  std::int64_t rest = in_groups, size = 1;
  for (const ChunkGroups::Axis& axis : axes) {
    rest /= axis.inside();
    const std::int64_t group = axis.number(place / (size * rest));
    place -= axis.begin(group) * size * rest;
    first.push_back(axis.lead + axis.begin(group));
    sizes.push_back(axis.size(group));
    size *= sizes.back();
  }
  std::int64_t sample = 0, step = 1;
  for (std::size_t a = axes.size(); a-- > 0;) {
    sample += step * (first[a] + place % sizes[a]);
    place /= sizes[a];
    step *= axes[a].positions;
  }
  return sample;
}

}  // namespace

std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

std::int64_t ChunkGroups::Axis::number(std::int64_t position) const {
  if (bounds.empty()) return position / group;
  return std::upper_bound(bounds.begin(), bounds.end(), position) - bounds.begin() - 1;
}

bool ChunkGroups::is_uneven() const {
  return std::any_of(axes.begin(), axes.end(),
                     [](const Axis& axis) { return !axis.bounds.empty(); });
}

std::int64_t ChunkGroups::in_groups() const {
  std::int64_t samples = 1;
  for (const Axis& axis : axes) samples *= axis.inside();
  return samples;
}

std::int64_t ChunkGroups::begin(std::int64_t group) const {
  if (!is_uneven()) return group * group_samples();
  std::int64_t rest = in_groups(), behind = count();  // of the axes after this one
  if (group == behind) return rest;
  std::int64_t place = 0, size = 1;
  for (const Axis& axis : axes) {
    rest /= axis.inside();
    behind /= axis.whole();
    const std::int64_t number = group / behind;
    group %= behind;
    place += size * axis.begin(number) * rest;
    size *= axis.size(number);
  }
  return place;
}

std::int64_t ChunkGroups::group_samples() const {
  std::int64_t samples = 1;
  for (const Axis& axis : axes) samples *= axis.group;
  return samples;
}

std::int64_t ChunkGroups::count() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.whole();
  return count;
}

std::int64_t ChunkGroups::samples() const {
  std::int64_t samples = 1;
  for (const Axis& axis : axes) samples *= axis.positions;
  return samples;
}

std::int64_t ChunkGroups::sample(std::int64_t place) const {
  if (place >= in_groups()) return outside_groups(place - in_groups(), axes);
  if (is_uneven()) return sample_of_uneven(place, axes, in_groups());
  const std::int64_t per_group = group_samples();
  std::int64_t group = place / per_group, member = place % per_group;
  std::int64_t sample = 0, step = 1;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const Axis& axis = axes[a];
    sample += step * (axis.lead + group % axis.whole() * axis.group + member % axis.group);
    group /= axis.whole();
    member /= axis.group;
    step *= axis.positions;
  }
  return sample;
}

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch,
                         std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)), half_bits_(1) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  const std::uint64_t state =
      mix_bits(mix_bits(mix_bits(seed + kGolden) + epoch + kGolden) + stream + kGolden);
  for (int r = 0; r < kRounds; ++r)
    keys_[r] = mix_bits(state + static_cast<std::uint64_t>(r + 1) * kGolden);
}

std::int64_t Permutation::operator()(std::int64_t i) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto x = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix_bits(right + key) & mask);
      left = right;
      right = next;
    }
    x = (left << half_bits_) | right;
  } while (x >= size_);
  return static_cast<std::int64_t>(x);
}

std::uint64_t lane_seed(std::uint64_t seed, std::int64_t lane) {
  return mix_bits(seed + static_cast<std::uint64_t>(lane + 1) * kGolden);
}

Permutation home_deal(std::int64_t groups, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 6;
  return Permutation(groups, seed, 0, kStream);
}

std::int64_t Order::sample(std::int64_t i, std::int64_t samples, std::int64_t epoch,
                           const ChunkGroups& groups) const {
  const auto e = static_cast<std::uint64_t>(epoch);
  switch (shuffle) {
    case Shuffle::none:
      return i;
    case Shuffle::global:
      return Permutation(samples, seed, e)(i);
    case Shuffle::block:
      break;
  }
  const std::int64_t per_group = groups.group_samples(), count = groups.count(),
                     in_groups = count * per_group;
  if (i >= in_groups)
    return groups.sample(in_groups + Permutation(samples - in_groups, seed, e, 1)(i - in_groups));
  const std::int64_t run_groups = std::min(buffer, count);  // a longer run is the only one
  const std::int64_t mixed = run_groups * per_group;
  const std::int64_t run = i / mixed;
  const std::int64_t here = std::min(mixed, in_groups - run * mixed);
  const std::int64_t p =
      Permutation(here, seed, e, 2 + static_cast<std::uint64_t>(run))(i - run * mixed);
  const std::int64_t group = Permutation(count, seed, e)(run * run_groups + p / per_group);
  return groups.sample(group * per_group + p % per_group);
}

}  // namespace batchfs

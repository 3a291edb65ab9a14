#include "engine/view/order.h"

#include <algorithm>

namespace batchfs {

namespace {

constexpr std::uint64_t kGolden = UINT64_C(0x9e3779b97f4a7c15);

/// The finaliser of splitmix64 (S. Vigna).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch, std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)), half_bits_(1) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  const std::uint64_t state = mix(mix(mix(seed + kGolden) + epoch + kGolden) + stream + kGolden);
  for (int r = 0; r < kRounds; ++r) keys_[r] = mix(state + static_cast<std::uint64_t>(r + 1) * kGolden);
}

std::int64_t Permutation::operator()(std::int64_t i) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto x = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix(right + key) & mask);
      left = right;
      right = next;
    }
    x = (left << half_bits_) | right;
  } while (x >= size_);
  return static_cast<std::int64_t>(x);
}

std::int64_t Order::sample(std::int64_t i, std::int64_t samples, std::int64_t epoch,
                           const ChunkGroups& groups) const {
  const auto e = static_cast<std::uint64_t>(epoch);
  switch (shuffle) {
    case Shuffle::none: return i;
    case Shuffle::global: return Permutation(samples, seed, e)(i);
    case Shuffle::block: break;
  }
  const std::int64_t whole = (groups.positions - groups.lead) / groups.group;
  const std::int64_t per_group = groups.group * groups.inner;
  const std::int64_t in_groups = whole * per_group;
  if (i >= in_groups) {
    // What belongs to no whole group, at both ends, comes last, mixed.
    const std::int64_t rest = samples - in_groups;
    const std::int64_t p = Permutation(rest, seed, e, 1)(i - in_groups);
    const std::int64_t lead = groups.lead * groups.inner;
    return p < lead ? p : p + in_groups;
  }
  const std::int64_t run_groups = std::min(window, whole);  // a longer run is the only one
  const std::int64_t mixed = run_groups * per_group;
  const std::int64_t run = i / mixed;
  const std::int64_t here = std::min(mixed, in_groups - run * mixed);
  const std::int64_t p = Permutation(here, seed, e, 2 + static_cast<std::uint64_t>(run))(i - run * mixed);
  const std::int64_t group = Permutation(whole, seed, e)(run * run_groups + p / per_group);
  return groups.lead * groups.inner + group * per_group + p % per_group;
}

}  // namespace batchfs

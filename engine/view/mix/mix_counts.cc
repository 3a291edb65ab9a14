#include "engine/view/mix/mix_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "engine/base/counted.h"

namespace batchfs {

namespace {

constexpr std::int64_t kDefaultBlock = 1024;

Error fail(const std::string& path, const std::string& why) {
  return Error(ErrorCode::invalid_argument, path + ": " + why);
}

std::int64_t sum_of(const std::vector<std::int64_t>& numbers, const std::string& path) {
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers)
    if (__builtin_add_overflow(sum, number, &sum) || sum > kMaxMixSamples)
      throw fail(path, "an epoch has more than 2^60 samples");
  if (sum == 0) throw fail(path, "an epoch has no samples");
  return sum;
}

/// Samples of each component in an epoch, where the file contains these; empty: it contains
/// weights.
std::vector<std::int64_t> counts_of(const MixSpec& spec, const std::vector<std::int64_t>& samples) {
  const MixComponent& first = spec.components[0];
  if (first.samples) {
    std::vector<std::int64_t> counts;
    for (const MixComponent& component : spec.components) counts.push_back(*component.samples);
    return counts;
  }
  if (first.repeat) {
    std::vector<std::int64_t> counts;
    for (std::size_t c = 0; c < samples.size(); ++c) {
      const double count = *spec.components[c].repeat * static_cast<double>(samples[c]);
      if (!(count <= static_cast<double>(kMaxMixSamples)))
        throw fail(spec.components[c].path + ".repeat", "an epoch has more than 2^60 samples");
      counts.push_back(std::llround(count));
    }
    return counts;
  }
  if (first.weight || spec.temperature != 1 || spec.view.epoch_samples) return {};
  return samples;  // each once
}

/// The shares of components with weights; of those without, by their numbers of samples.
std::vector<double> shares_of(const MixSpec& spec, const std::vector<std::int64_t>& samples) {
  std::vector<double> shares;
  for (std::size_t c = 0; c < samples.size(); ++c)
    shares.push_back(spec.components[c].weight.value_or(static_cast<double>(samples[c])));
  const auto normalize = [&shares] {
    double sum = 0;
    for (const double share : shares) sum += share;
    for (double& share : shares) share /= sum;
  };
  normalize();
  if (spec.temperature == 1) return shares;
  for (double& share : shares)
    if (share > 0) share = std::pow(share, 1 / spec.temperature);
  normalize();
  for (std::size_t c = 0; c < shares.size(); ++c)
    if (!std::isfinite(shares[c])) throw fail("temperature", "it is too small for these weights");
  return shares;
}

std::int64_t in_batches(std::int64_t samples, std::int64_t size, bool up) {
  return samples / size + (up && samples % size != 0 ? 1 : 0);
}

/// The least power of two, from the default on, that has a position of each component.
std::int64_t block_for(const std::vector<std::int64_t>& counts, std::int64_t all) {
  std::int64_t least = all;
  for (const std::int64_t count : counts)
    if (count > 0) least = std::min(least, count);
  std::int64_t block = kDefaultBlock;
  while (block < all && static_cast<__int128>(block) * least < all) block *= 2;
  return block;
}

Error too_small(const MixSpec& spec, std::size_t c, std::int64_t block, double share) {
  const std::string& path = spec.components[c].path;
  if (spec.mixing == MixSpec::Mixing::stratified)
    return fail(path, fmt::format("with \"stratified\" each batch has a sample of each view; its "
                                  "share of a batch of {} is {:.3g}; take a larger batch, or "
                                  "\"mixing\": \"sample\"",
                                  block, share * static_cast<double>(block)));
  return fail(path, fmt::format("its share of {} positions, which have exact quotas, is {:.3g}; "
                                "give \"batch\" a larger \"block\"",
                                block, share * static_cast<double>(block)));
}

}  // namespace

MixSchedule schedule_of(const MixSpec& spec, const std::vector<std::int64_t>& samples) {
  const bool by_batch = spec.mixing == MixSpec::Mixing::batch;
  const std::int64_t size = spec.view.batch_size;
  std::vector<std::int64_t> counts = counts_of(spec, samples);
  std::int64_t block =
      spec.mixing == MixSpec::Mixing::stratified ? size : spec.block.value_or(kDefaultBlock);
  MixSchedule::Counts result;
  if (!counts.empty()) {
    if (by_batch)
      for (std::int64_t& count : counts) count = in_batches(count, size, true);
    const std::int64_t all = sum_of(counts, "mix");
    if (spec.mixing != MixSpec::Mixing::stratified && !spec.block) block = block_for(counts, all);
    for (std::size_t c = 0; c < counts.size(); ++c)
      if (counts[c] > 0 && all > block && static_cast<__int128>(counts[c]) * block < all)
        throw too_small(spec, c, block, static_cast<double>(counts[c]) / static_cast<double>(all));
    return MixSchedule({counts, all, counts}, block, spec.view.order.seed);
  }
  const std::vector<double> shares = shares_of(spec, samples);
  std::int64_t all = spec.view.epoch_samples ? *spec.view.epoch_samples : sum_of(samples, "mix");
  if (by_batch) all = in_batches(all, size, spec.view.remainder != ViewSpec::Remainder::drop);
  if (all == 0) throw fail("batch.remainder", "\"drop\" leaves no batch of an epoch");
  result.period = block;
  result.rates = largest_remainder(shares, block);
  const std::vector<std::int64_t> rest = largest_remainder(shares, all % block);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (shares[c] > 0 && result.rates[c] == 0) throw too_small(spec, c, block, shares[c]);
    result.per_epoch.push_back(all / block * result.rates[c] + rest[c]);
    if (shares[c] > 0 && result.per_epoch[c] == 0)
      throw fail(spec.components[c].path,
                 fmt::format("an epoch of {} has none of its samples; take a longer one",
                             counted(all, by_batch ? "batch" : "sample",
                                     by_batch ? "batches" : "samples")));
  }
  return MixSchedule(std::move(result), block, spec.view.order.seed);
}

}  // namespace batchfs

#include "engine/view/order/shuffle_quality.h"
#include "engine/view/order/order.h"

#include <algorithm>

namespace batchfs {

namespace {

constexpr std::int64_t kMeasuredSamples = 32768;
constexpr std::int64_t kRuns = 2048;
constexpr std::int64_t kMaxEpochs = 64;
constexpr std::int64_t kMaxStretch = 1 << 16;  // samples of a step; other ranks are like the first
constexpr std::int64_t kMinStretches = 8;
constexpr std::int64_t kMaxRows = 8192;         // of a stretch
constexpr std::int64_t kMaxMeasured = 1 << 20;  // rows of all stretches and epochs

/// The mean distance of two of the values; they are sorted on the way.
double mean_distance(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (std::size_t i = 0; i < values.size();
       ++i)  // it is the larger one of i pairs, and the smaller one of the others
    sum += static_cast<double>(values[i]) * (2 * static_cast<double>(i) + 1 - n);
  return sum / (n * (n - 1) / 2);
}

/// The batches of a step are a stretch of samples. Two batches of one that a rank reads in
/// succession are one, too.
struct Stretches {
  Stretches(const View& view, std::int64_t world) {
    const bool pairs = world == 1 && view.batch_size() == 1;
    batches = pairs ? 2 : world;
    if (pairs && view.order() != nullptr) step = view.order()->lanes;
    samples = batches * view.batch_size();
    count = view.batches() / (batches * step) * step;
  }
  /// The number of a batch of a stretch.
  std::int64_t batch(std::int64_t stretch, std::int64_t i) const {
    return stretch / step * step * batches + stretch % step + i * step;
  }
  std::int64_t batches, samples, count;
  std::int64_t step = 1;  // from one batch of a stretch to the next
};

/// Starts of the windows of a stretch, per window dimension, added to `starts`.
void add_starts(const View& view, std::int64_t epoch, std::int64_t stretch,
                const Stretches& stretches, std::vector<std::vector<std::int64_t>>& starts) {
  const auto add = [&](std::int64_t batch, RowRange rows) {
    for (const Dims& each : view.window_starts(epoch, batch, rows)) {
      starts.resize(each.size());
      for (std::size_t w = 0; w < each.size(); ++w) starts[w].push_back(each[w]);
    }
  };
  // For a long batch, takes rows that are spread over all of it.
  const std::int64_t most = std::max<std::int64_t>(1, kMaxRows / stretches.batches);
  for (std::int64_t b = 0; b < stretches.batches; ++b) {
    const std::int64_t batch = stretches.batch(stretch, b), rows = view.row_count(batch);
    if (rows <= most) {
      add(batch, {0, rows});
      continue;
    }
    for (std::int64_t i = 0; i < most; ++i)
      add(batch, {rows / most * i + rows % most * i / most, 1});
  }
}

}  // namespace

std::optional<double> shuffle_quality(const View& view, std::int64_t world) {
  world = std::min(
      world, std::max<std::int64_t>(1, kMaxStretch / std::max<std::int64_t>(1, view.batch_size())));
  const Stretches stretches(view, world);
  if (view.order() == nullptr || view.samples() < 2 || stretches.count == 0) return std::nullopt;
  // Shuffles differ from epoch to epoch: where few runs are mixed in one, more epochs make up for
  // it.
  const bool shuffled = view.order()->shuffle != Order::Shuffle::none;
  const std::int64_t runs = (view.samples() + mixed_samples(view) - 1) / mixed_samples(view);
  std::int64_t epochs = shuffled ? std::clamp<std::int64_t>(kRuns / runs, 1, kMaxEpochs) : 1;
  if (world > 1)
    epochs = std::clamp<std::int64_t>(8 * kMeasuredSamples / (kMinStretches * stretches.samples), 1,
                                      epochs);
  const std::int64_t wanted =
      std::max<std::int64_t>(kMinStretches, kMeasuredSamples / stretches.samples / epochs);
  const std::int64_t taken = std::min(wanted, stretches.count);
  epochs = std::clamp<std::int64_t>(kMaxMeasured / (taken * std::min(stretches.samples, kMaxRows)),
                                    1, epochs);

  std::vector<std::vector<std::int64_t>> any, here;
  std::vector<double> in_stretch;
  std::int64_t counted = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const Permutation spread(stretches.count, 0,
                             static_cast<std::uint64_t>(epoch));  // no step that dimensions share
    for (std::int64_t i = 0; i < taken; ++i) {
      here.clear();
      add_starts(view, epoch, taken == stretches.count ? i : spread(i), stretches, here);
      any.resize(here.size());
      in_stretch.resize(here.size());
      // A whole epoch has all starts; another one would only repeat them.
      if (taken < stretches.count || epoch == 0)
        for (std::size_t w = 0; w < here.size(); ++w)
          any[w].insert(any[w].end(), here[w].begin(), here[w].end());
      if (here[0].size() < 2) continue;  // a last batch of one
      for (std::size_t w = 0; w < here.size(); ++w) in_stretch[w] += mean_distance(here[w]);
      ++counted;
    }
  }
  std::optional<double> least;
  for (std::size_t w = 0; w < any.size(); ++w) {
    const double distance = mean_distance(any[w]);
    if (distance == 0 || counted == 0) continue;  // every sample is at the same position
    least = std::min(least.value_or(1), in_stretch[w] / static_cast<double>(counted) / distance);
  }
  return least;
}

}  // namespace batchfs

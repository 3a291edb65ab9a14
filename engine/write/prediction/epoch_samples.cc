#include "engine/write/prediction/epoch_samples.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/store/crypto.h"
#include "engine/view/axes.h"

namespace batchfs {

namespace {

std::string digest_of(const PredictionSamples& samples) {
  std::string bytes;
  for (const auto* numbers : {&samples.numbers, &samples.starts})
    bytes.append(reinterpret_cast<const char*>(numbers->data()),
                 numbers->size() * sizeof(std::int64_t));
  return hex(sha256(bytes)).substr(0, 32);
}

}  // namespace

std::vector<std::int64_t> starts_along(const PredictionSamples& samples, int dim) {
  std::vector<std::int64_t> starts(samples.size());
  for (std::size_t row = 0; row < starts.size(); ++row) starts[row] = samples.start(row, dim);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

EpochSamples samples_of_epoch(const View& view, std::int64_t epoch) {
  EpochSamples result;
  PredictionSamples& samples = result.samples;
  for (const WindowDim& window : view.axes().windows) samples.dims.push_back(window.name);
  const std::size_t dims = samples.dims.size();
  std::vector<std::int64_t> numbers, starts;  // in the epoch's order
  for (std::int64_t batch = 0; batch < view.batches(); ++batch) {
    const std::vector<std::int64_t> windows = view.batch_windows(epoch, batch);
    const auto count = static_cast<std::ptrdiff_t>(windows.size() / (1 + dims));
    numbers.insert(numbers.end(), windows.begin(), windows.begin() + count);
    starts.insert(starts.end(), windows.begin() + count, windows.end());
    result.batches.resize(numbers.size(), batch);
  }
  // Samples that are drawn several times, or that pad a batch, are one sample.
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  result.rows.resize(numbers.size());
  for (const std::size_t i : order) {
    if (samples.numbers.empty() || samples.numbers.back() != numbers[i]) {
      samples.numbers.push_back(numbers[i]);
      const auto first = starts.begin() + static_cast<std::ptrdiff_t>(i * dims);
      samples.starts.insert(samples.starts.end(), first, first + static_cast<std::ptrdiff_t>(dims));
    }
    result.rows[i] = samples.size() - 1;
  }
  std::size_t combinations = 1;
  for (std::size_t d = 0; d < dims; ++d)  // at most the product of two counts of samples
    combinations = std::min(combinations * starts_along(samples, static_cast<int>(d)).size(),
                            samples.size() + 1);
  samples.is_grid = combinations == samples.size();
  samples.digest = digest_of(samples);
  return result;
}

std::vector<std::int64_t> batches_to_do(const EpochSamples& epoch, const std::vector<bool>& done) {
  std::vector<std::int64_t> batches;
  for (std::size_t i = 0; i < epoch.rows.size(); ++i)
    if (!done[epoch.rows[i]] && (batches.empty() || batches.back() != epoch.batches[i]))
      batches.push_back(epoch.batches[i]);
  return batches;
}

}  // namespace batchfs

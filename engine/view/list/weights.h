#pragma once
// "weights" of a view's samples: how often each is drawn in an epoch, by systematic resampling.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/view/list/list_spec.h"

namespace batchfs {

/// Draws of samples with probabilities in the proportion of their weights, such that each sample
/// occurs as often as its share of the draws, rounded up or down. Immutable. 8 bytes a sample.
class Draws {
 public:
  /// The weight of each sample. Throws invalid_argument, with `path` and the first number at fault,
  /// for numbers that are negative or not finite, and where all are 0.
  Draws(std::vector<double> weights, const std::string& path);

  std::int64_t samples() const { return static_cast<std::int64_t>(sums_.size()); }
  /// Draw j of `draws`; `u` in [0, 1) is the epoch's. Ascends with j.
  std::int64_t sample(std::int64_t j, std::int64_t draws, double u) const;
  /// Can it be drawn? False for weights of 0, and for those too small to count beside the others.
  bool is_drawn(std::int64_t sample) const {
    const auto s = static_cast<std::size_t>(sample);
    return sample == last_ || sums_[s] > (s == 0 ? 0 : sums_[s - 1]);
  }
  /// The uniform number of an epoch.
  static double uniform(std::uint64_t seed, std::int64_t epoch);

 private:
  std::vector<double> sums_;  // of the weights up to each sample
  std::int64_t last_ = 0;     // the last sample with a weight
};

struct WeightsSpec {
  std::optional<std::string> column;    // of the list
  std::optional<std::string> variable;  // of the store: the value at the window's start
  FileSpec file;                        // else
  std::string path;                     // in the view, for messages
};

/// Reads "weights" of "samples". Throws invalid_argument with the JSON path.
std::optional<WeightsSpec> parse_weights(const JsonRef& samples, const FilePath& file_path);

/// The numbers of a .npy file, and its digest. Throws invalid_argument unless there are `samples`.
std::vector<double> read_weights(FileSpec& file, std::int64_t samples);

}  // namespace batchfs

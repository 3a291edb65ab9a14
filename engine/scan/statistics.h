#pragma once
// Statistics of a view's selection: each selected element once, whatever the windows are, as it is
// decoded, but for elements that restrictions ("samples", "split") keep every sample from.
//
// Chunks are read once, in parallel. Sums are merged along a tree over the chunks, so that
// the result depends on the store and the selection alone, to the last bit: not on the number of
// threads, nor on how many processes share the work.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine.h"
#include "engine/scan/moments.h"
#include "engine/scan/statistics_form.h"
#include "engine/view/view.h"

namespace batchfs {

class VariablePass;

struct StatisticsOptions {
  /// Dimensions that keep numbers of their own for each position. Default: vertical_dims().
  std::optional<std::vector<std::string>> per;
  /// The dimension of the tendencies: differences between neighbouring selected positions, in
  /// stored order, where samples reach both. Empty: none. Default: time_dim().
  std::optional<std::string> tendency;
  bool quantiles = false;  // the median and the quartiles too
};

/// Levels and channels: dimensions whose coordinate has the attribute `positive` or axis "Z" (CF
/// conventions, section 4.3), or that have one of the usual names: level, pressure_level, height,
/// depth, channel, ...
std::vector<std::string> vertical_dims(const Dataset& dataset);

/// The first dimension whose coordinate holds dates, else the one named "time", else nothing.
std::string time_dim(const Dataset& dataset);

/// Chunks to read, and done.
using StatisticsProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// The statistics of every variable of a view that holds numbers, in the view's order, and after
/// them of its made channels, but for constants: for these, one number for all positions unless
/// `per` requests otherwise.
class StatisticsScan {
 public:
  /// The dataset and the view outlive it. Throws not_found for an unknown dimension,
  /// invalid_argument.
  StatisticsScan(const Dataset& dataset, const View& view, const StatisticsOptions& options);
  ~StatisticsScan();

  const StatisticsForm& form() const { return form_; }

  /// Reads share `task` of `tasks`. Shares are contiguous, and about equal in decoded bytes.
  /// Throws what reading throws. Blocks, one call at a time; not for workers of the engine.
  StatisticsSums read(Engine& engine, int task, int tasks, const StatisticsProgress& progress = {});

 private:
  /// Dimensions along which each position has numbers, without those that a split cuts. Throws for
  /// one that is requested and cannot.
  static std::vector<std::string> asked_dims(const Dataset& dataset,
                                             const StatisticsOptions& options,
                                             const std::vector<std::string>& cut);

  std::vector<std::unique_ptr<VariablePass>> passes_;
  StatisticsForm form_;
};

/// All of it, in this process.
std::vector<VariableStatistics> compute_statistics(Engine& engine, const Dataset& dataset,
                                                   const View& view,
                                                   const StatisticsOptions& options,
                                                   const StatisticsProgress& progress = {});

}  // namespace batchfs

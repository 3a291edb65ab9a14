#pragma once
// Statistics of what a view selects: each selected element once, whatever the windows are, as it is
// decoded, but for positions that restrictions ("samples") keep every sample from.
//
// Chunks are read once, in parallel. Parts are put together in the order of the chunks, so that the
// result depends on the store and the selection alone, to the last bit.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/engine.h"
#include "engine/scan/moments.h"

namespace batchfs {

struct StatisticsOptions {
  /// Dimensions that keep numbers of their own for each position. Default: vertical_dims().
  std::optional<std::vector<std::string>> per;
  /// The dimension of the tendencies: differences between neighbouring selected positions, in
  /// stored order, where samples reach both. Empty: none. Default: time_dim().
  std::optional<std::string> tendency;
};

struct VariableStatistics {
  std::string name;
  std::vector<std::string> dims;    // that keep numbers of their own, as stored
  Dims shape;                       // of the selection along them
  std::vector<Moments> values;      // C order
  std::string tendency_dim;         // empty: no tendencies
  std::vector<Moments> tendencies;  // C order
};

/// Levels and channels: dimensions whose coordinate has the attribute `positive` or axis "Z" (CF
/// conventions, section 4.3), or that have one of the usual names: level, pressure_level, height,
/// depth, channel, ...
std::vector<std::string> vertical_dims(const Dataset& dataset);

/// The first dimension whose coordinate holds dates, else the one named "time", else nothing.
std::string time_dim(const Dataset& dataset);

/// Chunks to read, and done.
using StatisticsProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Of every variable of the view that holds numbers, in the view's order. Throws not_found for a
/// dimension that is not there, and what reading throws. Blocks; not for workers of the engine.
std::vector<VariableStatistics> compute_statistics(Engine& engine, const Dataset& dataset,
                                                   const View& view,
                                                   const StatisticsOptions& options,
                                                   const StatisticsProgress& progress = {});

/// What "normalize" reads, under "variables": an object of variables.
Json statistics_json(const std::vector<VariableStatistics>& statistics, const View& view);

}  // namespace batchfs

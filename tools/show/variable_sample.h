#pragma once
// The part of a variable that a page shows: one plane, or the middle of a plane of many chunks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/pipeline/engine.h"
#include "fs/formats/picture_axes.h"
#include "fs/formats/pixel_means.h"

namespace batchfs {

/// Limits of what is read of one variable.
struct SampleLimits {
  static constexpr std::int64_t kMaxChunks = 64;
  /// Decoded bytes of its chunks; values in memory take at most as much again.
  std::uint64_t bytes = UINT64_C(256) << 20;
};

/// Which part is read. Dimensions are numbers of Variable::dims.
struct SamplePlan {
  std::optional<PlaneAxes> plane;  // nullopt: fewer than two dimensions
  Box box;                         // array coordinates
  std::int64_t chunks = 0;         // that the box touches
  std::uint64_t bytes = 0;         // decoded, of these chunks
  bool is_whole_plane = true;
  std::optional<std::size_t> held;  // a dimension whose position is chosen, and stays
};

/// At the middle of the dimensions that are not shown. `facts`: of each dimension. Throws
/// not_supported, saying why, where the values are no numbers or one chunk is past the limit; a
/// variable without elements gives an empty box.
SamplePlan plan_sample(const Variable& variable, const std::vector<DimFacts>& facts,
                       const SampleLimits& limits);

/// Of the values of a sample. Infinite values count as neither missing nor valid.
struct SampleSummary {
  std::int64_t count = 0, missing = 0, infinite = 0;
  double min = 0, max = 0, mean = 0;    // of the finite ones, if there are any
  std::vector<std::int64_t> histogram;  // of the finite ones, from min to max; empty without any

  std::int64_t finite() const { return count - missing - infinite; }
};

struct VariableSample {
  SamplePlan plan;
  DataType type;     // of the values
  PixelMeans means;  // of the plane
  std::int64_t across = 0, down = 0;
  SampleSummary summary;
};

/// Picture elements either way, at most.
inline constexpr std::int64_t kMaxPicture = 360;

/// Reads what `plan` says; where the middle holds no value at all, the first and then the last
/// position of the dimensions that are not shown. Blocks; not for workers of the engine. Throws
/// what reading throws.
VariableSample read_sample(Engine& engine, const Variable& variable, SamplePlan plan);

/// `values`: C order, native byte order. Precondition: has_number(type).
SampleSummary summarize(const DataType& type, std::span<const std::byte> values);

}  // namespace batchfs

#pragma once
// The part of a variable that a page shows: one plane, or the middle of a plane of many chunks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/pipeline/engine.h"
#include "fs/formats/picture_axes.h"
#include "fs/formats/pixel_means.h"

namespace batchfs {

/// Limits for one variable.
struct SampleLimits {
  static constexpr std::int64_t kMaxChunks = 64;
  /// Decoded bytes of its chunks; the values take at most as much again.
  std::uint64_t bytes = UINT64_C(256) << 20;
};

/// The part to read. Dimensions are numbers of Variable::dims.
struct SamplePlan {
  std::optional<PlaneAxes> plane;  // nullopt: fewer than two dimensions
  Box box;                         // array coordinates
  std::int64_t chunks = 0;         // touched by the box
  std::uint64_t bytes = 0;         // decoded, of these chunks
  bool is_whole_plane = true;
  std::optional<std::size_t> held;  // a dimension whose position is chosen and must not change
};

/// Takes the middle of the dimensions that are not shown. `facts`: of each dimension. Throws
/// not_supported, with the reason, if the values are not numbers or one chunk exceeds the limit;
/// the box is empty for a variable without elements.
SamplePlan plan_sample(const Variable& variable, const std::vector<DimFacts>& facts,
                       const SampleLimits& limits);

/// Statistics of a sample's values. Infinite values count as neither missing nor valid.
struct SampleSummary {
  std::int64_t count = 0, missing = 0, infinite = 0;
  double min = 0, max = 0, mean = 0;  // of the finite ones, if any
  // of the finite ones, from min to max; empty if there are none
  std::vector<std::int64_t> histogram;

  std::int64_t finite() const { return count - missing - infinite; }
};

struct VariableSample {
  SamplePlan plan;
  DataType type;     // of the values
  PixelMeans means;  // of the plane
  std::int64_t across = 0, down = 0;
  SampleSummary summary;
};

/// Maximum width and height of a picture, in elements.
inline constexpr std::int64_t kMaxPicture = 360;

/// Reads the part in `plan`; if the middle holds no value at all, the first and then the last
/// position of the dimensions that are not shown. Blocks; not for workers of the engine. Throws the
/// errors of reading.
VariableSample read_sample(Engine& engine, const Variable& variable, SamplePlan plan);

/// `values`: C order, native byte order. Precondition: has_number(type).
SampleSummary summarize(const DataType& type, std::span<const std::byte> values);

}  // namespace batchfs

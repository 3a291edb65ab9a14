#pragma once
// The contents of a batch: its tensors, the chunks that it needs, and where their elements go.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/dims.h"
#include "engine/base/short_dims.h"
#include "engine/view/coarsen/coarsen_spec.h"
#include "engine/zarr/data_type.h"

namespace batchfs {

struct TensorSpec {
  std::string name;
  DataType type;
  std::vector<std::string> dims;    // "sample" first (xbatcher views: as xbatcher names them)
  Dims shape;                       // of a full batch
  bool padded = false;              // elements may lie outside the selection
  std::array<std::byte, 16> pad{};  // their value, where padded
  /// Values of all samples, in their order, where they come with the samples and not from the
  /// store: `dims` is then "sample" alone.
  std::shared_ptr<const std::vector<std::byte>> values;
  int stack_axis = -1;               // the axis that "stack" made, of dims
  std::vector<CoarsenStep> coarsen;  // of its dimensions, by their stored names
  /// The entries along it: "t2m", "temperature_500"; empty when there are too many.
  std::vector<std::string> channels;
};

/// One box of one chunk and where its elements go.
struct Part {
  std::uint32_t tensor = 0;  // from the number of tensors on: operands of TensorSet::combinations
  std::int32_t repeat = -1;  // more places of the box, in BatchPlan::repeats; -1: none
  ShortBox source;           // chunk coordinates
  std::int64_t offset = 0;   // bytes from the tensor's start
  ShortDims strides;         // bytes in the tensor, one per array dimension
};

/// Elements that lie outside the selection: they are the tensor's `pad`, among operands NaN.
struct Padding {
  std::uint32_t tensor = 0;  // or operands, as in Part
  std::int64_t offset = 0;   // bytes from the tensor's start
  Dims shape;
  Dims strides;  // bytes in the tensor
};

/// A box of a made channel (TensorSet::made) and where its elements go.
struct MadePart {
  std::uint32_t channel = 0;
  Part part;  // `source` in positions of the channel's dimensions
};

/// A sample of a channel that is computed when all that it is of has arrived.
struct CombinedPart {
  std::uint32_t combination = 0;  // of TensorSet::combinations
  std::uint32_t tensor = 0;       // or the operands of another channel, as in Part
  std::int64_t offset = 0;        // bytes from the tensor's start
  std::int64_t operands = 0;      // bytes from the start of the combination's operands
  Dims starts;                    // of the sample's windows, as in Row
};

/// One element of TensorSpec::values.
struct GivenValue {
  std::uint32_t tensor = 0;
  std::int64_t offset = 0;  // bytes from the tensor's start
  std::int64_t sample = 0;
};

/// Everything a batch takes from one chunk.
struct ChunkUse {
  std::uint32_t variable = 0;                    // index into View::variables()
  std::int64_t chunk = 0;                        // linear number in the array's grid
  std::uint32_t first_part = 0, part_count = 0;  // in BatchPlan::parts
};

struct BatchPlan {
  std::vector<std::int64_t> samples;  // sample numbers in row order
  std::vector<Dims> shapes;           // of each tensor in this batch
  std::vector<ChunkUse> chunks;  // each (variable, chunk) once, in the order they are first needed
  std::vector<Part> parts;
  std::vector<Repeat> repeats;
  std::vector<Padding> paddings;
  std::vector<std::int64_t> padded;  // elements that `paddings` fill, which may overlap, by tensor
  std::vector<GivenValue> given;
  std::vector<MadePart> made;
  std::vector<CombinedPart> combined;      // of a sample in the order of computation
  std::vector<Padding> combined_paddings;  // of `combined`, in tensors, over their results
};

/// Memory that a plan may take, in bytes.
struct PlanLimit {
  std::uint64_t bytes = UINT64_MAX;
};

}  // namespace batchfs

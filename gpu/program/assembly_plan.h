#pragma once
// Plans the kernel's work to assemble batches of a view: a Conversion for each variable in each
// tensor, computed once, and the boxes of each batch.
//
//   const AssemblyTables tables(view);  // throws not_supported if only the CPU can do it
//   GatherPlan plan;
//   plan.add(...);                      // a part of a chunk

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/dataset/converter.h"
#include "engine/view/view.h"
#include "gpu/kernels/assembly.h"
#include "gpu/program/gpu_codec_support.h"

namespace batchfs::gpu {

/// The assembly tables of a view. Immutable.
class AssemblyTables {
 public:
  /// Throws Error{not_supported} that names the variable whose values the GPU does not convert.
  explicit AssemblyTables(const View& view);

  const std::vector<Conversion>& conversions() const { return conversions_; }
  /// Contents of the constants area: numbers of normalisation, masked values, fill values.
  const std::vector<std::byte>& constants() const { return constants_; }

  std::uint32_t conversion(std::uint32_t tensor, std::uint32_t variable) const {
    return rows_.at({tensor, variable});
  }
  /// Where the variable's fill value lies.
  std::uint64_t fill_value(std::uint32_t variable) const { return fills_.at(variable); }
  /// Offset of the element that pads a tensor outside of the selection, and the conversion that
  /// copies elements of the tensor's type.
  std::uint64_t pad(std::uint32_t tensor) const { return pads_.at(tensor).first; }
  std::uint32_t pad_conversion(std::uint32_t tensor) const { return pads_.at(tensor).second; }
  /// Offset of the values of a tensor that are given with the samples.
  std::uint64_t given(std::uint32_t tensor) const { return given_.at(tensor); }

 private:
  std::uint64_t add(const void* data, std::size_t size);
  Conversion convert(const Converter& converter);

  std::vector<Conversion> conversions_;
  std::vector<std::byte> constants_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rows_;
  std::vector<std::uint64_t> fills_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> pads_;
  std::vector<std::uint64_t> given_;  // per tensor; 0: none are
  std::map<const Normalization*, std::pair<std::uint64_t, std::uint64_t>> normalizations_;
};

/// The boxes of a batch, or of some of its chunks.
class GatherPlan {
 public:
  /// A box of elements from `source` to `target`, bytes in their areas. Throws not_supported for a
  /// box that takes more rows than any sensible batch does.
  struct Place {
    std::uint64_t offset = 0;  // of the first element
    Dims strides;              // bytes
  };
  void add(std::uint32_t conversion, const Dims& shape, const Place& source, std::uint8_t swap,
           const Place& target, std::uint64_t entry, const Dims& entry_strides);
  /// Adds a box that one fill value, in the constants area, fills.
  void add_fill(std::uint32_t conversion, const Dims& shape, std::uint64_t fill_value,
                const Place& target, std::uint64_t entry, const Dims& entry_strides);

  const std::vector<Gather>& gathers() const { return gathers_; }
  std::uint32_t slices() const { return slices_; }
  void clear();

 private:
  void add_box(Gather row, std::vector<GatherDim> dims);

  std::vector<Gather> gathers_;
  std::uint32_t slices_ = 0;
};

/// The first and one-past-last C-order byte of the part of a chunk that a batch uses.
std::pair<std::uint64_t, std::uint64_t> bytes_used(const Array& array, const BatchPlan& plan,
                                                   const ChunkUse& use);

/// A decoded chunk in the target area of decoding.
struct DecodedPlace {
  std::uint64_t offset = 0;  // of the chunk's first element; a chunk of which only a run is present
                             // may begin before the area (modulo 2^64)
  const ChunkForm* form = nullptr;
};

/// Adds all boxes that a batch takes from one chunk. `chunk` is null for a missing one; `tensors`
/// are the offsets of the tensors in the batch area.
void add_use(GatherPlan& plan, const View& view, const AssemblyTables& tables,
             const BatchPlan& batch, const ChunkUse& use, const DecodedPlace* chunk,
             std::span<const std::uint64_t> tensors);

/// Adds the repeated dimensions of a part, whose source stride is 0, to its own. Orders all of them
/// as the kernel writes the result: the fastest dimension is the last.
void add_repeats(const Repeat& repeat, Dims& shape, GatherPlan::Place& source,
                 GatherPlan::Place& target, Dims& entries);

/// Adds the padding outside of the selection.
void add_paddings(GatherPlan& plan, const AssemblyTables& tables, const BatchPlan& batch,
                  std::span<const std::uint64_t> tensors);

/// Adds the values that are given with the samples.
void add_given(GatherPlan& plan, const View& view, const AssemblyTables& tables,
               const BatchPlan& batch, std::span<const std::uint64_t> tensors);

}  // namespace batchfs::gpu

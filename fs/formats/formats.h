#pragma once
// The file formats of a batch.
//
//   npy          one file per tensor, data on a page boundary
//   safetensors  one file, all tensors, data on a page boundary
//   npz          one uncompressed zip of .npy members, as numpy.savez writes
//   png          one picture of the batch; its tensors are in a second file, which nobody opens
//   raw          one file per tensor with only its bytes: the chunks of batch-….zarr/

#include "engine/pipeline/batch_format.h"

namespace batchfs {

const BatchFormat& npy_format();
const BatchFormat& safetensors_format();
const BatchFormat& npz_format();
const BatchFormat& png_format();
const BatchFormat& raw_format();

/// By a name of a view's "formats": raw for "zarr".
const BatchFormat& format_named(const std::string& name);

/// Throws not_supported where one of the view's formats has no type for one of its tensors. Only
/// files need a format: tensors of any type can be handed over.
void check_formats(const View& view);

/// Memory that a batch takes, in that of the view's formats that takes most.
std::uint64_t batch_memory(const View& view, const MemoryFiles& files);

}  // namespace batchfs

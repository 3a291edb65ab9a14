#pragma once
// Headers of batch files as batchfs writes them: places and shapes of the tensors. Checked against
// the schema.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/reader/batch.h"

namespace batchfs::reader {

/// Reads the header of an .npy file that lies in `memory` and holds `info`'s values. Throws
/// corrupt. Source: numpy.lib.format.
Tensor npy_tensor(const Mapping& memory, const TensorInfo& info);

/// The schema's tensors, in its order, from a .safetensors file. Throws corrupt.
std::vector<Tensor> safetensors_tensors(const Mapping& memory, const Schema& schema);

}  // namespace batchfs::reader

#pragma once
// How batches lie in the memory of the hand-off: all tensors in one file, each from a page boundary
// on. One descriptor and one mapping make a batch, whatever its tensors; each can be registered
// with a GPU driver and copied by itself. The numbers and windows of many samples are in a second
// file.

#include "engine/pipeline/batch_format.h"

namespace batchfs::handoff {

const BatchFormat& packed_format();

}  // namespace batchfs::handoff
